#include "protocol/ids.hpp"

#include "protocol/limits.hpp"

#include <algorithm>

namespace parley::protocol {

namespace {

/// `count` characters of `bits` bits each; one random number provides at most 64 bits.
std::string draw(random_source& random, std::string prefix, std::string_view alphabet, int bits, int count) {
  const std::uint64_t mask = alphabet.size() - 1;
  std::uint64_t pool = 0;
  int left = 0;
  for (int i = 0; i < count; ++i) {
    if (left < bits) {
      pool = random();
      left = 64;
    }
    prefix += alphabet[pool & mask];
    pool >>= bits;
    left -= bits;
  }
  return prefix;
}

constexpr std::string_view base32 = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::string_view hex = "0123456789abcdef";

bool is_id_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

} // namespace

std::string make_session_id(random_source& random) {
  return draw(random, "sess_", base32, 5, 20);
}

std::string make_ticket_id(random_source& random) {
  return draw(random, "ticket_", hex, 4, 12);
}

std::string make_response_id(random_source& random) {
  return draw(random, "resp_", hex, 4, 12);
}

std::string make_id(random_source& random, std::string_view prefix) {
  return draw(random, std::string(prefix), base32, 5, 20);
}

std::string make_resume_token(random_source& random) {
  return draw(random, "resume_", base32, 5, 32);
}

std::string sanitise_session_id(std::string_view asked) {
  std::string id(asked.substr(0, max_session_id_bytes));
  std::replace_if(
      id.begin(), id.end(), [](char c) { return !is_id_character(c); }, '_');
  return id;
}

bool is_session_id(std::string_view id, std::size_t most) {
  return !id.empty() && id.size() <= most && std::all_of(id.begin(), id.end(), is_id_character);
}

std::string legacy_ids::next(std::int64_t unix_ms) {
  std::int64_t last = last_.load();
  std::int64_t mine;
  do mine = std::max(unix_ms, last + 1);
  while (!last_.compare_exchange_weak(last, mine));
  return "rt_" + std::to_string(mine);
}

} // namespace parley::protocol
