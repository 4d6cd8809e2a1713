#pragma once

#include "base/byte_budget.hpp"
#include "base/token_bucket.hpp"
#include "protocol/openai/shared/fault.hpp"
#include "protocol/speech/sound.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// What clients of OpenAI's dialects may have done for them, judged before it is done. Each connection has an allowance of
// its own, which the pace of a conversation never exhausts; what exceeds it is taken from one that all connections of an
// owner share. What neither has left is refused (sound) or waits (sessions). Time is an argument.
namespace parley::protocol::openai {

using budget_time = std::chrono::steady_clock::time_point;

/// What the connections of one owner (an API key, or an address) share. Thread-safe.
class owner_budget {
public:
  owner_budget() : owner_budget(base::byte_budget(most_kept_bytes, most_kept_bytes), {}) {}

  /// `kept`: how much may be held for it and for all.
  owner_budget(const base::byte_budget& kept, std::string owner) : kept_(kept.open(std::move(owner))) {}

  /// A share of what may be held in memory for it. May outlive this.
  base::byte_budget::share open_kept() const { return kept_.open_another(); }

  bool take_sound(double seconds, budget_time now) {
    const std::lock_guard lock(mutex_);
    return sound_s_.take(seconds, now);
  }
  bool take_response(budget_time now) {
    const std::lock_guard lock(mutex_);
    return responses_.take(1, now);
  }
  /// So many steps, or what is left of them.
  double lend_steps(double wanted, budget_time now) {
    const std::lock_guard lock(mutex_);
    const double lent = std::min(wanted, schema_steps_.left(now));
    schema_steps_.take(lent, now);
    return lent;
  }
  void return_steps(double unused, budget_time now) {
    const std::lock_guard lock(mutex_);
    schema_steps_.give_back(unused, now);
  }
  bool take_session(budget_time now) {
    const std::lock_guard lock(mutex_);
    return sessions_.take(1, now);
  }
  budget_time session_due(budget_time now) const {
    const std::lock_guard lock(mutex_);
    return sessions_.when(1, now);
  }

  /// Whether nothing of it is used, so that it may as well be forgotten.
  bool full(budget_time now) const {
    const std::lock_guard lock(mutex_);
    return sound_s_.full(now) && sessions_.full(now) && responses_.full(now) && schema_steps_.full(now);
  }

private:
  static constexpr std::size_t most_kept_bytes = 512u << 20;

  const base::byte_budget::share kept_; ///< of nothing
  mutable std::mutex mutex_;
  base::token_bucket sound_s_{600, 10};
  base::token_bucket sessions_{64, 16};
  base::token_bucket responses_{1024, 32};
  base::token_bucket schema_steps_{60e6, 3e6}; ///< 0.2 s at once, then a hundredth of a thread
};

/// What one connection may have. Not thread-safe.
class connection_budget {
public:
  /// `shared`: null = it shares with nobody.
  explicit connection_budget(std::shared_ptr<owner_budget> shared)
      : shared_(shared ? std::move(shared) : std::make_shared<owner_budget>()) {}

  /// Sound that is to be decoded. All or nothing.
  bool take_sound(double seconds, budget_time now) {
    const double own = std::min(seconds, sound_s_.left(now));
    return (own >= seconds || shared_->take_sound(seconds - own, now)) && sound_s_.take(own, now);
  }

  /// Nothing if an inner session may be opened now, which counts it; otherwise when to ask again.
  std::optional<budget_time> open_session(budget_time now) {
    if (sessions_.take(1, now) || shared_->take_session(now)) return std::nullopt;
    return std::min(sessions_.when(1, now), shared_->session_due(now));
  }

  /// Of nothing yet.
  base::byte_budget::share open_kept() const { return shared_->open_kept(); }

  /// A response that is asked for, whether or not it will be made: what it answers is gone through at once.
  bool take_response(budget_time now) { return responses_.take(1, now) || shared_->take_response(now); }

  /// Steps of checking schemas, of its own and of its owner's.
  struct steps {
    double own = 0;
    double shared = 0;

    double all() const { return own + shared; }
  };

  /// So many, or what is left: taken before the check. What it did not use comes back.
  steps lend_steps(double wanted, budget_time now) {
    const double own = std::min(wanted, schema_steps_.left(now));
    schema_steps_.take(own, now);
    return {own, shared_->lend_steps(wanted - own, now)};
  }
  void return_steps(const steps& lent, double unused, budget_time now) {
    const double shared = std::min(unused, lent.shared);
    shared_->return_steps(shared, now);
    schema_steps_.give_back(unused - shared, now);
  }

  /// An answer that is larger than the event that asks for it: what the server keeps, shown again.
  bool take_echo(std::size_t bytes, budget_time now) { return echo_bytes_.take(static_cast<double>(bytes), now); }

private:
  std::shared_ptr<owner_budget> shared_;
  base::token_bucket sound_s_{10, 1.25}; ///< more than one a second: clocks differ
  base::token_bucket sessions_{8, 1};
  base::token_bucket responses_{256, 4};
  base::token_bucket schema_steps_{6e6, 1e5};
  base::token_bucket echo_bytes_{2u << 20, 64u << 10};
};

inline constexpr double most_event_seconds = 300;           ///< of sound in one event: as much as a conversation keeps
inline constexpr std::size_t most_append_bytes = 15u << 20; ///< of base64 in one append, as in OpenAI's API
inline constexpr double most_event_steps = 3e6;             ///< of checking strict schemas: 9 ms
inline constexpr std::size_t most_item_text = 512u << 10;   ///< bytes of text: as much as a conversation keeps
inline constexpr std::size_t most_event_text = 3u << 20;    ///< the same with an escape for each byte

inline fault keeps_enough(std::string_view param) {
  return {"rate_limit_exceeded", "The server holds as much for this client as it may.", std::string(param),
          "rate_limit_error"};
}

/// Sound or a picture, counted as long as anybody holds it.
template<class T>
std::shared_ptr<const T> counted(T what, base::byte_budget::share held) {
  struct pair {
    T what;
    base::byte_budget::share held;
  };
  const std::shared_ptr<const pair> both = std::make_shared<pair>(pair{std::move(what), std::move(held)});
  return {both, &both->what};
}

/// What one event may have done: the sound and the text of its items, its schemas. At most as much as the constants above say, and as
/// its connection may have.
class event_sound {
public:
  event_sound(connection_budget& budget, budget_time now) : budget_(budget), now_(now) {}
  event_sound(const event_sound&) = delete;
  event_sound& operator=(const event_sound&) = delete;
  ~event_sound() {
    if (lent_) budget_.return_steps(*lent_, std::max(0.0, static_cast<double>(steps_)), now_);
  }

  /// Bytes that will be held; taken before they are made.
  result<base::byte_budget::share> keep(std::size_t bytes, std::string_view param) {
    auto held = budget_.open_kept();
    if (!held.grow_to(bytes)) return tl::unexpected(keeps_enough(param));
    return held;
  }

  /// What is left of the steps that checking this event's schemas may take. Counted down by who checks them.
  std::int64_t& schema_steps() {
    if (!lent_) {
      lent_ = budget_.lend_steps(most_event_steps, now_);
      steps_ = static_cast<std::int64_t>(lent_->all());
    }
    return steps_;
  }

  /// Why they were not enough, if an event of its own would have had more.
  std::optional<fault> too_much_checked() const {
    if (!lent_ || steps_ > 0 || lent_->all() >= most_event_steps) return std::nullopt;
    if (steps_ == static_cast<std::int64_t>(lent_->all())) return std::nullopt; // nothing was to be checked
    return fault{"rate_limit_exceeded", "Strict schemas come faster than they can be checked.", "", "rate_limit_error"};
  }

  /// Call before a text is decoded, with its bytes as they are written.
  std::optional<fault> charge_text(std::size_t written_bytes, std::string_view param) {
    text_bytes_ += written_bytes;
    if (text_bytes_ <= most_event_text) return std::nullopt;
    return invalid_value(param, "the items of one event may have 3 MiB of text.").value();
  }

  /// Call before `base64_text` is decoded. Returns why it must not be. `param` names the field.
  std::optional<fault> charge(std::string_view base64_text, const speech::sound_format& format,
                              std::string_view param) {
    return charge_seconds(speech::seconds_of(base64_text, format), param);
  }

  /// The same for sound that is decoded already.
  std::optional<fault> charge_seconds(double seconds, std::string_view param) {
    seconds_ += seconds;
    if (seconds_ > most_event_seconds) return invalid_value(param, "one event may hold 300 s of sound.").value();
    if (budget_.take_sound(seconds, now_)) return std::nullopt;
    return fault{"rate_limit_exceeded", "Sound comes faster than time, and more than ten minutes ahead of it.",
                 std::string(param), "rate_limit_error"};
  }

private:
  connection_budget& budget_;
  budget_time now_;
  double seconds_ = 0;
  std::size_t text_bytes_ = 0;
  std::optional<connection_budget::steps> lent_;
  std::int64_t steps_ = 0;
};

} // namespace parley::protocol::openai
