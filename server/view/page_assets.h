// The files of the page, as the build has bundled and compressed them; none where it was built without the page.
#pragma once

#include <span>
#include <string_view>

namespace rigstep::server {

struct PageAsset {
  std::string_view path;  // "/page.js"
  std::string_view type;  // of the content; ends with zero
  std::string_view plain, gzip, brotli;
};

std::span<const PageAsset> page_assets() noexcept;

}  // namespace rigstep::server
