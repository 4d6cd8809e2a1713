#include "protocol/session/resume_token.hpp"

#include <charconv>
#include <system_error>
#include <utility>

namespace parley::protocol {

namespace {

/// Compares every character, even after the first difference.
bool same_secret(std::string_view secret, std::string_view shown) {
  if (secret.empty() || secret.size() != shown.size()) return false;
  volatile unsigned char differs = 0;
  for (std::size_t i = 0; i < secret.size(); ++i)
    differs = static_cast<unsigned char>(
        differs | (static_cast<unsigned char>(secret[i]) ^ static_cast<unsigned char>(shown[i])));
  return differs == 0;
}

} // namespace

result<std::uint64_t> read_event_id(const std::optional<std::string>& text) {
  std::uint64_t id = 0;
  if (!text) return id;
  const char* end = text->data() + text->size();
  const auto [at, fault] = std::from_chars(text->data(), end, id);
  if (fault == std::errc() && at == end) return id;
  return tl::unexpected(error{error_code::resume_refused, "last_event_id: not the number of an event"});
}

error no_such_claim() {
  return {error_code::resume_refused, "no session with this session_id and resume_token can be taken up"};
}

error server_restarts() {
  return {error_code::service_unavailable, "the server restarts; come back"};
}

bool resume_token::opens(std::string_view token) const {
  const bool newest = same_secret(token_, token);
  const bool one_before = same_secret(used_, token);
  return newest || one_before;
}

void resume_token::renew(std::string_view used, std::string next) {
  used_ = used;
  token_ = std::move(next);
}

} // namespace parley::protocol
