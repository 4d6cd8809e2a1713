#pragma once

#include "config/settings.hpp"

#include <filesystem>

namespace parley::net {

/// The source of a server's certificate: section `tls` of the settings.
struct tls_options {
  config::tls_mode mode = config::tls_mode::off;
  std::filesystem::path cert; ///< PEM; empty with `automatic` = in the user's state folder
  std::filesystem::path key;
};

} // namespace parley::net
