#include "net/cluster/node_tls.hpp"

#include "config/load.hpp"

namespace parley::net {

namespace {

void check(const boost::system::error_code& ec, const std::string& key, const std::string& file) {
  if (ec) throw config::settings_error(key + ": " + file + ": " + ec.message());
}

} // namespace

std::shared_ptr<boost::asio::ssl::context> make_node_tls(const config::settings& settings) {
  using boost::asio::ssl::context;
  const auto& files = settings.nodes;
  if (files.cert.empty()) return nullptr;
  auto tls = std::make_shared<context>(context::tls);
  tls->set_options(context::default_workarounds | context::no_sslv2 | context::no_sslv3 | context::no_tlsv1 |
                   context::no_tlsv1_1);
  boost::system::error_code ec;
  tls->use_certificate_chain_file(files.cert, ec);
  check(ec, "nodes.cert", files.cert);
  tls->use_private_key_file(files.key, context::pem, ec);
  check(ec, "nodes.key", files.key);
  tls->load_verify_file(files.ca, ec);
  check(ec, "nodes.ca", files.ca);
  tls->set_verify_mode(boost::asio::ssl::verify_peer | boost::asio::ssl::verify_fail_if_no_peer_cert);
  return tls;
}

} // namespace parley::net
