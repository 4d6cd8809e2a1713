#include "net/tls.hpp"

#include "config/load.hpp"
#include "net/host_name.hpp"
#include "net/logger.hpp"
#include "net/self_signed.hpp"
#include "net/text.hpp"

#include <cstdlib>
#include <vector>

namespace parley::net {
namespace {

namespace ssl = boost::asio::ssl;

/// The folder for files that programs create themselves (XDG Base Directory Specification).
std::filesystem::path state_folder() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state)
    return std::filesystem::path(state) / "parley";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".local" / "state" / "parley";
  throw config::settings_error("tls.cert: there is no home folder to keep a certificate in");
}

std::vector<std::string> hosts_of(const std::string& listening, std::string_view names) {
  std::vector<std::string> hosts{listening};
  while (const auto word = take_word(names))
    if (const auto host = read_host(*word)) hosts.push_back(host->address ? host->address->to_string() : host->name);
  return hosts;
}

void check(const boost::system::error_code& ec, const char* key, const std::filesystem::path& file) {
  if (ec) throw config::settings_error(std::string(key) + ": " + file.string() + ": " + ec.message());
}

} // namespace

std::shared_ptr<ssl::context> make_tls(const tls_options& options, const std::string& host, std::string_view names) {
  if (options.mode == config::tls_mode::off) return nullptr;
  tls_options files = options;
  if (files.mode == config::tls_mode::automatic) {
    if (files.cert.empty()) files.cert = state_folder() / "tls.pem";
    if (files.key.empty()) files.key = state_folder() / "tls.key";
    const auto hosts = hosts_of(host, names);
    if (!holds_for_a_while(files.cert) || !std::filesystem::exists(files.key) || lacks_a_name(files.cert, hosts)) {
      make_self_signed(files.cert, files.key, hosts);
      log()->info("made a self-signed certificate: {}", files.cert.string());
    }
  }
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 |
                       ssl::context::single_dh_use);
  boost::system::error_code ec;
  context->use_certificate_chain_file(files.cert.string(), ec);
  check(ec, "tls.cert", files.cert);
  context->use_private_key_file(files.key.string(), ssl::context::pem, ec);
  check(ec, "tls.key", files.key);
  return context;
}

} // namespace parley::net
