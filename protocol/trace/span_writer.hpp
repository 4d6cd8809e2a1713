#pragma once

#include "conversation/usage.hpp"
#include "protocol/trace/context.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace parley::protocol::trace {

/// Something that has begun and is not over. Its id is known at once, for what happens inside it.
struct begun {
  span_id id{};
  time_point since;
};

/// Writes the spans of one scope.
class span_writer {
public:
  span_writer(std::shared_ptr<const scope> at, random_source random, clock_pair clock)
      : at_(std::move(at)), random_(std::move(random)), clock_(clock) {}

  begun begin(time_point now) const { return {make_span_id(random_), now}; }

  /// A span around what has begun, which is over now. `parent`: null = that around the scope.
  span made(std::string name, const begun& what, time_point now, const begun* parent = nullptr) const {
    span out;
    out.trace = at_->trace;
    out.id = what.id;
    out.parent = parent != nullptr ? parent->id : at_->self;
    out.flags = at_->flags;
    out.state = at_->state;
    out.name = std::move(name);
    out.start_ns = clock_.ns_at(what.since);
    out.end_ns = std::max(out.start_ns, clock_.ns_at(now));
    return out;
  }

  /// The span around the scope itself.
  span whole(std::string name, time_point since, time_point now) const {
    span out = made(std::move(name), {at_->self, since}, now);
    out.parent = at_->parent;
    out.parent_is_remote = at_->parent_is_remote;
    // What a client has called, not a part of something else here.
    if (!at_->parent || at_->parent_is_remote) out.kind = span_kind::server;
    return out;
  }

  void send(span&& what, std::string_view error = {}) const {
    if (!error.empty()) {
      what.error = error;
      add(what, "error.type", std::string(error));
    }
    at_->to->take(std::move(what));
  }

  std::int64_t ns_at(time_point when) const { return clock_.ns_at(when); }
  const scope& at() const { return *at_; }
  const random_source& random() const { return random_; }

  static void add(span& to, std::string_view key, attribute::value_type value, bool list = false) {
    to.attributes.push_back({std::string(key), std::move(value), list});
  }

  /// Tokens, by the names of OpenTelemetry's conventions for generative models.
  static void add(span& to, const conversation::usage& used) {
    add(to, "gen_ai.usage.input_tokens", used.input_text + used.input_audio + used.input_vision);
    add(to, "gen_ai.usage.output_tokens", used.output_text + used.output_audio);
    if (used.input_audio > 0) add(to, "gen_ai.usage.audio.input_tokens", used.input_audio);
    if (used.input_vision > 0) add(to, "gen_ai.usage.image.input_tokens", used.input_vision);
    if (used.output_audio > 0) add(to, "gen_ai.usage.audio.output_tokens", used.output_audio);
  }

private:
  std::shared_ptr<const scope> at_;
  random_source random_;
  clock_pair clock_;
};

} // namespace parley::protocol::trace
