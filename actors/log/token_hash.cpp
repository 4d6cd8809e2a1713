#include "actors/log/token_hash.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdexcept>

namespace parley::actors {

token_hash hash_of(std::string_view token) {
  token_hash hash{};
  if (!token.empty() && EVP_Digest(token.data(), token.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256 failed");
  return hash;
}

logged::tokens hashes_of(const protocol::resume_token& token) {
  return {hash_of(token.token()), hash_of(token.used())};
}

bool opens(const logged::tokens& valid, std::string_view token) {
  const auto shown = hash_of(token);
  const bool newest = CRYPTO_memcmp(shown.data(), valid.newest.data(), shown.size()) == 0;
  const bool used = CRYPTO_memcmp(shown.data(), valid.used.data(), shown.size()) == 0;
  return shown != token_hash{} && (newest || used);
}

} // namespace parley::actors
