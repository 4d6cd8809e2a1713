#include "net/access/ephemeral_keys.hpp"

#include "base/read_file.hpp"
#include "config/load.hpp"
#include "protocol/media/base64.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <span>
#include <stdexcept>
#include <utility>

namespace parley::net {
namespace {

constexpr std::size_t secret_bytes = 32;
constexpr std::size_t most_key_bytes = 16u << 10;
constexpr std::string_view prefix = "ek_";
constexpr std::string_view purpose = "parley ephemeral key 1\n"; ///< the secret signs nothing else in this way

/// Base64 with the alphabet for URLs and subprotocols, without padding.
std::string url_text(std::string_view bytes) {
  std::string out;
  protocol::base64::append(std::as_bytes(std::span(bytes)), out);
  std::replace(out.begin(), out.end(), '+', '-');
  std::replace(out.begin(), out.end(), '/', '_');
  out.erase(std::min(out.find('='), out.size()));
  return out;
}

/// Only what `url_text` writes is read: bytes have a single spelling.
std::optional<std::string> from_url_text(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '-', '+');
  std::replace(out.begin(), out.end(), '_', '/');
  out.append((4 - out.size() % 4) % 4, '=');
  auto bytes = protocol::base64::decode(out);
  if (!bytes || url_text(*bytes) != text) return std::nullopt;
  return bytes;
}

} // namespace

ephemeral_keys::unix_clock ephemeral_keys::system_clock() {
  return [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::int64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  };
}

ephemeral_keys::ephemeral_keys(unix_clock clock) : secret_(secret_bytes, '\0'), clock_(std::move(clock)) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret_.data()), static_cast<int>(secret_.size())) != 1)
    throw std::runtime_error("no random numbers for the secret of ephemeral keys");
}

ephemeral_keys ephemeral_keys::load(const std::filesystem::path& file, unix_clock clock) {
  auto secret = base::read_file(file);
  if (!secret) throw config::settings_error("auth.ephemeral_secret_file: " + file.string() + " cannot be read");
  if (secret->size() < secret_bytes)
    throw config::settings_error("auth.ephemeral_secret_file: " + file.string() + " has fewer than 32 bytes");
  ephemeral_keys keys(std::move(clock));
  keys.secret_ = *std::move(secret);
  return keys;
}

std::string ephemeral_keys::signature(std::string_view payload) const {
  const std::string text = std::string(purpose).append(payload);
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned size = 0;
  if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(), &size) == nullptr)
    throw std::runtime_error("HMAC-SHA256 is not available");
  return {reinterpret_cast<const char*>(code.data()), size};
}

/// The payload: expiry, owner and session, a line each; names of owners have no white space.
std::string ephemeral_keys::make(const grant& what) const {
  const auto payload = std::to_string(what.expires_at) + "\n" + what.owner + "\n" + what.session;
  return std::string(prefix) + url_text(payload) + "." + url_text(signature(payload));
}

std::optional<ephemeral_keys::grant> ephemeral_keys::read(std::string_view key) const {
  if (!is_one(key) || key.size() > most_key_bytes) return std::nullopt;
  key.remove_prefix(prefix.size());
  const auto dot = key.find('.');
  if (dot == key.npos) return std::nullopt;
  const auto payload = from_url_text(key.substr(0, dot)), code = from_url_text(key.substr(dot + 1));
  if (!payload || !code) return std::nullopt;
  const auto right = signature(*payload);
  if (code->size() != right.size() || CRYPTO_memcmp(code->data(), right.data(), right.size()) != 0) return std::nullopt;
  const auto first = payload->find('\n'), second = payload->find('\n', first + 1);
  if (second == payload->npos) return std::nullopt;
  grant out;
  const auto [end, wrong] = std::from_chars(payload->data(), payload->data() + first, out.expires_at);
  if (wrong != std::errc() || end != payload->data() + first || out.expires_at <= clock_()) return std::nullopt;
  out.owner = payload->substr(first + 1, second - first - 1);
  out.session = payload->substr(second + 1);
  return out;
}

} // namespace parley::net
