#pragma once

#include "config/settings.hpp"

#include <boost/asio/ssl/context.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace parley::net {

/// The source of a server's certificate: section `tls` of the settings.
struct tls_options {
  config::tls_mode mode = config::tls_mode::off;
  std::filesystem::path cert; ///< PEM; empty with `automatic` = in the user's state folder
  std::filesystem::path key;
};

/// TLS 1.2 or later with the configured certificate; null without TLS. With `automatic`, a certificate for `host` and
/// this machine is created if there is none or the old one is about to expire. \throws config::settings_error for files
/// that cannot be used
std::shared_ptr<boost::asio::ssl::context> make_tls(const tls_options& options, const std::string& host);

} // namespace parley::net
