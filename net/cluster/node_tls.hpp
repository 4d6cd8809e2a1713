#pragma once

#include "config/settings.hpp"

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

namespace parley::net {

/// TLS between nodes: each side shows a certificate and accepts those signed by the authority in the settings. Null
/// without `nodes.cert`.
/// \throws config::settings_error for files that cannot be used
std::shared_ptr<boost::asio::ssl::context> make_node_tls(const config::settings& settings);

} // namespace parley::net
