#pragma once

#include "inference/engine.hpp"

#include <deque>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace parley::bench {

/// An engine that answers at once, with `listen` or with a second of sound. It shows the cost of all else.
class instant_engine final : public inference::engine {
public:
  instant_engine(bool speaks, int slots, sink tell)
      : tell_(std::move(tell)), second_(std::make_shared<const std::vector<float>>(24'000, 0.125F)) {
    info_.model = "stub";
    info_.device = "none";
    info_.slots = slots;
    info_.context_tokens = 1 << 20; // the most that a log of a session may say
    info_.hears = info_.sees = true;
    info_.speaks = speaks;
  }

  const inference::engine_info& info() const override { return info_; }

  void handle(inference::command&& order) override { commands_.push_back(std::move(order)); }

  bool advance() override {
    while (!commands_.empty()) {
      std::visit([this](const auto& each) { take(each); }, commands_.front());
      commands_.pop_front();
    }
    return false;
  }

private:
  void take(const inference::open_duplex& order) { tell_(inference::opened{order.session, 12, {}}); }
  void take(const inference::open_chat& order) { tell_(inference::opened{order.session, 0, {}}); }
  void take(const inference::close_session& order) { tell_(inference::closed{order.session}); }
  void take(const inference::cut&) {}
  void take(const inference::cancel_turn&) {}

  void take(const inference::submit_unit& unit) {
    inference::step_output answer{};
    answer.session = unit.session;
    answer.unit = unit.unit;
    answer.kind = info_.speaks ? inference::output_kind::audio : inference::output_kind::listen;
    if (info_.speaks) answer.audio = second_;
    tell_(std::move(answer));
  }

  void take(const inference::submit_turn& turn) {
    tell_(inference::chat_done{turn.session, turn.turn, inference::finish::turn_end, "Hello there.", nullptr, {}, {}});
  }

  sink tell_;
  inference::engine_info info_;
  std::deque<inference::command> commands_;
  inference::pcm second_; ///< shared by all answers
};

} // namespace parley::bench
