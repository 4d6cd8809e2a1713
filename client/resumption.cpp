#include "client/resumption.hpp"

#include <algorithm>
#include <utility>

namespace parley::client {
namespace {

constexpr double first_wait = 0.5, longest_wait = 10; ///< seconds (docs/protocol.md 14)

/// A server that died may have lost appends that it had answered, but never more than a few seconds of them.
constexpr std::int64_t kept_after_answer = 60;

} // namespace

void resumption::heard(const server_glance& event) {
  using type = server_event_type;
  last_event_ = std::max(last_event_, event.event_id);
  forget_answered(event.input);
  switch (event.type) {
  case type::created:
    session_ = event.session_id;
    token_ = event.resume_token;
    seconds_ = event.resume_seconds;
    break;
  case type::resumed:
    token_ = event.resume_token;
    inputs_ = event.inputs;
    break;
  case type::go_away: told_wait_ = static_cast<double>(event.retry_after_ms) / 1000; break;
  case type::closed: closed_ = event.reason != "taken_up_elsewhere"; break;
  case type::error:
    if (event.error_code == "resume_refused") refused_[address_] = true;
    break;
  default: break;
  }
}

void resumption::sent(frame append) {
  if (possible()) kept_.push_back(std::move(append));
}

void resumption::forget_answered(std::int64_t input) {
  while (!kept_.empty() && forgotten_ < input - kept_after_answer) {
    kept_.pop_front();
    ++forgotten_;
  }
}

std::optional<resumption::attempt> resumption::next(double now, double chance) {
  if (!possible()) return std::nullopt;
  if (!lost_) {
    lost_ = now;
    wait_ = told_wait_ > 0 ? told_wait_ : first_wait;
  } else {
    if (std::find(refused_.begin(), refused_.end(), false) == refused_.end()) return std::nullopt;
    wait_ = std::min(2 * wait_, longest_wait);
    address_ = (address_ + 1) % refused_.size();
  }
  const auto left = *lost_ + told_wait_ + seconds_ - now;
  if (left <= 0) return std::nullopt;
  return attempt{address_, std::min(wait_ * (1 + chance), left)};
}

std::string resumption::query() const {
  return "session_id=" + session_ + "&resume_token=" + token_ + "&last_event_id=" + std::to_string(last_event_);
}

std::vector<resumption::frame> resumption::missing() {
  lost_.reset();
  told_wait_ = 0;
  refused_.assign(refused_.size(), false);
  const auto skip = std::clamp<std::int64_t>(inputs_ - forgotten_, 0, static_cast<std::int64_t>(kept_.size()));
  return {kept_.begin() + skip, kept_.end()};
}

} // namespace parley::client
