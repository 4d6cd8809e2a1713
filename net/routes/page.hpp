#pragma once

#include "net/routes/router.hpp"

#include <span>
#include <string_view>

namespace parley::net {

/// One file of `web/`, as it was when the binary was built.
struct page_file {
  std::string_view path; ///< URL path: "/" for index.html, else "/" and the file's name
  std::string_view type; ///< Content-Type
  std::string_view etag; ///< quoted hash of the body
  std::string_view body;
};

/// All files; cmake/EmbedPage.cmake generates the table.
std::span<const page_file> page_files();

/// Adds one route per file (docs/protocol.md 13, GET /); other paths do not exist. Browsers keep the files and ask
/// whether they are still valid. The page may load nothing from elsewhere, and runs only its own script files.
void add_page(router& table);

} // namespace parley::net
