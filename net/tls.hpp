#pragma once

#include "net/tls_options.hpp"

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace parley::net {

/// TLS 1.2 or later with the configured certificate; null without TLS. With `automatic`, a certificate for `host`,
/// `names` (the setting `server.names`) and this machine is created if there is none, or the old one is about to expire
/// or lacks one of these names. \throws config::settings_error for files that cannot be used
std::shared_ptr<boost::asio::ssl::context> make_tls(const tls_options& options, const std::string& host,
                                                    std::string_view names = {});

} // namespace parley::net
