#pragma once

#include "inference/engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace parley::bench {

/// When an `instant_engine` speaks.
enum class manner : std::uint8_t {
  listens,  ///< never
  speaks,   ///< each second
  converses ///< for three seconds after each stretch of sound that somebody made, unless forced to listen
};

/// An engine that answers at once, with `listen` or with a second of sound. It shows the cost of all else.
class instant_engine final : public inference::engine {
public:
  instant_engine(manner how, int slots, sink tell)
      : tell_(std::move(tell)), how_(how), second_(std::make_shared<const std::vector<float>>(24'000, 0.125F)) {
    info_.model = "stub";
    info_.device = "none";
    info_.slots = slots;
    info_.context_tokens = 1 << 20; // the most that a log of a session may say
    info_.hears = info_.sees = true;
    info_.speaks = how != manner::listens;
  }

  const inference::engine_info& info() const override { return info_; }

  void handle(conversation::command&& order) override { commands_.push_back(std::move(order)); }

  bool advance() override {
    while (!commands_.empty()) {
      std::visit([this](const auto& each) { take(each); }, commands_.front());
      commands_.pop_front();
    }
    return false;
  }

private:
  void take(const conversation::open_duplex& order) { tell_(conversation::opened{order.session, 12, {}}); }
  void take(const conversation::open_chat& order) { tell_(conversation::opened{order.session, 0, {}}); }
  void take(const conversation::close_session& order) {
    talks_.erase(order.session);
    tell_(conversation::closed{order.session});
  }
  void take(const conversation::cut&) {}
  void take(const conversation::cancel_turn&) {}

  void take(const conversation::submit_unit& unit) {
    if (how_ == manner::converses) return converse(unit);
    conversation::step_output answer{};
    answer.session = unit.session;
    answer.unit = unit.unit;
    answer.kind = info_.speaks ? conversation::output_kind::audio : conversation::output_kind::listen;
    if (info_.speaks) answer.audio = second_;
    tell_(std::move(answer));
  }

  void take(const conversation::submit_turn& turn) {
    tell_(conversation::chat_done{
        turn.session, turn.turn, conversation::finish_reason::turn_end, "Hello there.", nullptr, {}, {}});
  }

  /// A session of an engine that converses.
  struct talk {
    bool heard = false; ///< somebody spoke
    int left = 0;       ///< seconds of the answer
  };

  static bool is_loud(const std::vector<float>& samples) {
    return std::any_of(samples.begin(), samples.end(), [](float x) { return std::abs(x) > 0.02F; });
  }

  void converse(const conversation::submit_unit& unit) {
    auto& now = talks_[unit.session];
    const bool loud = is_loud(*unit.samples);
    if (loud && now.left == 0) now.heard = true;
    if (unit.force_listen)
      now.left = 0;
    else if (!loud && std::exchange(now.heard, false))
      now.left = answer_seconds;
    conversation::step_output step{};
    step.session = unit.session;
    step.unit = unit.unit;
    if (now.left == 0 || unit.force_listen) {
      step.kind = conversation::output_kind::listen;
      return tell_(std::move(step));
    }
    auto words = step;
    words.kind = conversation::output_kind::text;
    words.text = " And so on, for a while.";
    words.last = false;
    tell_(std::move(words));
    step.kind = conversation::output_kind::audio;
    step.audio = second_;
    step.first = false;
    step.end_of_turn = --now.left == 0;
    tell_(std::move(step));
  }

  static constexpr int answer_seconds = 3;

  sink tell_;
  manner how_;
  std::map<conversation::session_id, talk> talks_;
  inference::engine_info info_;
  std::deque<conversation::command> commands_;
  conversation::pcm second_; ///< shared by all answers
};

} // namespace parley::bench
