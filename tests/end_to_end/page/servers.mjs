// Servers of the page for its test, and requests to them as no browser would make them.
import { spawn } from "node:child_process";
import { request } from "node:http";
import { connect } from "node:net";

const { RIGSTEP } = process.env;
const running = new Set();

// A server in the background; resolves with its process and what `pattern` finds in its output.
export function start(args, pattern) {
  const child = spawn(RIGSTEP, args, { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  return new Promise((resolve, reject) => {
    let text = "";
    const look = (data) => {
      text += data;
      const found = pattern.exec(text);
      if (found) resolve({ child, found });
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("exit", () => reject(new Error(`rigstep ${args.join(" ")} ended: ${text}`)));
  });
}

export async function stop({ child }) {
  running.delete(child);
  child.removeAllListeners("exit");
  const ended = new Promise((resolve) => child.on("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}

export async function view(...args) {
  const server = await start(["view", ...args], /http:\/\/\S+/);
  return { ...server, link: server.found[0] };
}

process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

// A request as no browser would make it.
export function ask(link, path, { method = "GET", headers = {}, body = "", agent } = {}) {
  const { hostname, port } = new URL(link);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers, agent }, (answer) => {
      let text = "";
      answer.on("data", (data) => (text += data));
      answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

// What is answered to bytes that no browser would send. parts: of the host's header.
export function statuses(link, parts) {
  const { hostname, port } = new URL(link);
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(port), hostname, () => parts(`Host: ${hostname}:${port}\r\n`).forEach((part) => socket.write(part)));
    const end = () => resolve([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((found) => found[1]));
    socket.on("data", (data) => (text += data)).on("close", end).on("error", () => undefined);
    socket.setTimeout(3000, () => socket.destroy());
  });
}

// A request from elsewhere with another one in its body, behind what the server reads at once.
export function requestInRequest(host) {
  const hidden = `POST /api/command HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: 13\r\n\r\n{"do":"play"}`;
  const head = (length) => `POST /api/command HTTP/1.1\r\n${host}Origin: http://example.org\r\nContent-Length: ${String(length).padStart(5, "0")}\r\n\r\n`;
  const padding = "x".repeat(4096 - head(0).length);
  return [head(padding.length + hidden.length) + padding + hidden];
}
