#include "server/view/page_assets.h"

namespace rigstep::server {

#ifdef RIGSTEP_PAGE_FOLDER

// The bytes of a file of the bundle, as the assembler puts them into the program.
#define RIGSTEP_EMBED(symbol, file)                      \
  asm(".section .rodata\n"                               \
      ".global rigstep_page_" #symbol                    \
      "_begin\n"                                         \
      ".global rigstep_page_" #symbol                    \
      "_end\n"                                           \
      "rigstep_page_" #symbol                            \
      "_begin:\n"                                        \
      ".incbin \"" RIGSTEP_PAGE_FOLDER "/" file          \
      "\"\n"                                             \
      "rigstep_page_" #symbol                            \
      "_end:\n"                                          \
      ".previous\n");                                    \
  extern "C" const char rigstep_page_##symbol##_begin[]; \
  extern "C" const char rigstep_page_##symbol##_end[];   \
  static const std::string_view symbol(                  \
      rigstep_page_##symbol##_begin,                     \
      static_cast<std::size_t>(rigstep_page_##symbol##_end - rigstep_page_##symbol##_begin))

RIGSTEP_EMBED(html, "page.html");
RIGSTEP_EMBED(html_gzip, "page.html.gz");
RIGSTEP_EMBED(html_brotli, "page.html.br");
RIGSTEP_EMBED(script, "page.js");
RIGSTEP_EMBED(script_gzip, "page.js.gz");
RIGSTEP_EMBED(script_brotli, "page.js.br");
RIGSTEP_EMBED(style, "page.css");
RIGSTEP_EMBED(style_gzip, "page.css.gz");
RIGSTEP_EMBED(style_brotli, "page.css.br");

std::span<const PageAsset> page_assets() noexcept {
  static const PageAsset kAssets[] = {
      {"/", "text/html; charset=utf-8", html, html_gzip, html_brotli},
      {"/page.js", "text/javascript; charset=utf-8", script, script_gzip, script_brotli},
      {"/page.css", "text/css; charset=utf-8", style, style_gzip, style_brotli}};
  return kAssets;
}

#else

std::span<const PageAsset> page_assets() noexcept { return {}; }

#endif

}  // namespace rigstep::server
