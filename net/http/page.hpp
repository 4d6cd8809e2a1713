#pragma once

#include "net/http/router.hpp"

#include <span>
#include <string_view>

namespace parley::net {

/// One file of `web/`, as it was when the binary was built.
struct page_file {
  std::string_view path; ///< of the URL: "/" for index.html, else "/" and the file's name
  std::string_view type; ///< Content-Type
  std::string_view etag; ///< quoted hash of the body
  std::string_view body;
};

/// All of them; the table is made by cmake/EmbedPage.cmake.
std::span<const page_file> page_files();

/// One route per file (docs/protocol.md 13, GET /): a path that is not in the table does not exist. Browsers keep what
/// they have and ask whether it is still valid. The page may load nothing from anywhere else, and runs only its own
/// script files.
void add_page(router& table);

} // namespace parley::net
