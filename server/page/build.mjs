// Bundles the page: node build.mjs FOLDER. Writes page.html, page.js and page.css there, each also as .gz and .br.
import { build } from "esbuild";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2];
if (folder === undefined) throw new Error("usage: node build.mjs FOLDER");

await build({
  entryPoints: { page: join(here, "src/main.ts") },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  outdir: folder,
  logLevel: "warning",
});
await copyFile(join(here, "src/page.html"), join(folder, "page.html"));

const most = 400_000; // bytes, of all files as a browser loads them
let total = 0;
for (const name of ["page.html", "page.js", "page.css"]) {
  const content = await readFile(join(folder, name));
  const brotli = brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  await writeFile(join(folder, `${name}.br`), brotli);
  await writeFile(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
  total += brotli.length;
}
if (total > most) throw new Error(`the page has ${total} bytes compressed, the most is ${most}: leave something out`);
console.log(`page: ${total} bytes compressed`);
