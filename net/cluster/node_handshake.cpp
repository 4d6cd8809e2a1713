#include "net/cluster/node_handshake.hpp"

#include "net/cluster/node_greeting.hpp"

#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <utility>

namespace parley::net {

namespace {

/// What a worker says first.
std::string joining_words(const std::string& secret) {
  return secret.empty() ? "a worker joins" : "a worker joins with " + secret;
}

/// Takes the same time wherever they differ.
bool is_same_secret(const std::string& shown, const std::string& wanted) {
  return shown.size() == wanted.size() && CRYPTO_memcmp(shown.data(), wanted.data(), wanted.size()) == 0;
}

} // namespace

node_handshake::node_handshake(stream connection, side as, std::shared_ptr<asio::ssl::context> tls, std::string secret,
                               std::chrono::milliseconds patience, tunnel_limits limits, done tell)
    : stream_(std::move(connection)), side_(as), tls_(std::move(tls)), secret_(std::move(secret)), patience_(patience),
      limits_(limits), tell_(std::move(tell)) {
  static_assert(sizeof block_ == node_greeting_bytes);
}

void node_handshake::run() {
  stream_.plain().expires_after(patience_);
  if (!tls_) return on_secure({});
  stream_.async_secure(
      *tls_, [self = shared_from_this()](error_code ec) { self->on_secure(ec); },
      side_ == side::gateway ? asio::ssl::stream_base::server : asio::ssl::stream_base::client);
}

void node_handshake::on_secure(error_code ec) {
  if (ec) return fail_to_secure(ec);
  if (side_ == side::gateway) return hear();
  write_line(joining_words(secret_), [self = shared_from_this()](error_code ec) {
    if (ec) return self->fail("the connection is lost: " + ec.message(), false);
    self->hear();
  });
}

void node_handshake::fail_to_secure(error_code ec) {
  const bool by_tls = ec.category() == asio::error::get_ssl_category();
  const int reason = by_tls ? ERR_GET_REASON(static_cast<unsigned long>(ec.value())) : 0;
  if (reason != SSL_R_WRONG_VERSION_NUMBER && reason != SSL_R_HTTP_REQUEST)
    return fail("no TLS: " + ec.message(), by_tls);
  const std::string plain = "the other side speaks plain text, and nodes.cert is set on this one";
  if (side_ == side::worker) return fail(plain, true);
  // Sent in plain text, because a worker without TLS could not read anything else.
  said_ = node_greeting("refused: this gateway speaks TLS: set nodes.cert, nodes.key and nodes.ca");
  asio::async_write(stream_.plain(), asio::buffer(said_),
                    [self = shared_from_this(), plain](error_code, std::size_t) { self->fail(plain, true); });
}

void node_handshake::hear() {
  stream_.async_read_some(asio::buffer(block_.data() + heard_, block_.size() - heard_),
                          [self = shared_from_this()](error_code ec, std::size_t bytes) { self->on_heard(ec, bytes); });
}

void node_handshake::on_heard(error_code ec, std::size_t bytes) {
  heard_ += bytes;
  const std::string_view so_far(block_.data(), heard_);
  // A foreign peer is recognised by its first bytes; it does not matter whether it would send more.
  if (!may_be_node_greeting(so_far)) return refuse(describe_unknown_peer(so_far));
  if (ec == beast::error::timeout) return fail("no answer in time", false);
  if (ec) {
    // A refused certificate shows up here: with TLS 1.3 the client has finished before its certificate is checked.
    const bool alert = ec.category() == asio::error::get_ssl_category();
    return fail((alert ? "TLS is refused: " : "the connection is lost: ") + ec.message(), alert);
  }
  if (heard_ < block_.size()) return hear();
  judge();
}

void node_handshake::judge() {
  const auto found = read_node_greeting({block_.data(), block_.size()});
  if (!found) return refuse(describe_unknown_peer({}));
  if (!found->same_version) return refuse(version_mismatch(found->version));
  if (side_ == side::worker) {
    if (found->words == node_welcome) return give();
    return fail(found->words, true);
  }
  if (!secret_.empty() && !is_same_secret(found->words, joining_words(secret_)))
    return refuse("only processes that this one has started may join here");
  write_line(std::string(node_welcome), [self = shared_from_this()](error_code ec) {
    if (ec) return self->fail("the connection is lost: " + ec.message(), false);
    self->give();
  });
}

void node_handshake::write_line(const std::string& words, std::function<void(error_code)> then) {
  said_ = node_greeting(words);
  asio::async_write(stream_, asio::buffer(said_), [then = std::move(then)](error_code ec, std::size_t) { then(ec); });
}

/// Both sides report it: this side to its caller, the other because the answer tells it.
void node_handshake::refuse(const std::string& why) {
  if (side_ == side::worker) return fail(why, true);
  write_line("refused: " + why, [self = shared_from_this(), why](error_code) { self->fail(why, true); });
}

void node_handshake::give() {
  if (!tell_) return;
  stream_.plain().expires_never();
  try {
    auto socket = start_tunnel(std::move(stream_), limits_);
    std::exchange(tell_, nullptr)(std::move(socket));
  } catch (const std::exception& error) {
    // Usually because no descriptors are left. The connection closes with this object.
    if (auto tell = std::exchange(tell_, nullptr)) tell(actors::dial_failure{error.what(), false});
  }
}

void node_handshake::drop() {
  if (std::exchange(tell_, nullptr)) stream_.plain().close();
}

void node_handshake::fail(std::string why, bool lasting) {
  auto tell = std::exchange(tell_, nullptr);
  if (!tell) return;
  stream_.plain().close();
  tell(actors::dial_failure{std::move(why), lasting});
}

} // namespace parley::net
