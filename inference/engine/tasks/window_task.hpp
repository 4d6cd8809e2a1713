#pragma once

#include "inference/engine/tasks/duplex_session.hpp"
#include "inference/engine/tasks/window_slider.hpp"

#include <chrono>
#include <cstdint>

namespace parley::inference {

/// Follows each unit of a session with a window: feeds the end of the unit, and slides the window if the cache has
/// become too long (docs/model/thinker.md 5.6). The unit was already answered, so a failure here ends the session.
class window_task final : public task {
public:
  /// `unit_began`: this task's time is counted as part of the unit.
  window_task(duplex_session& of, engine_clock::time_point unit_began);

  void begin() override;
  engine_clock::time_point deadline() const override { return session_.due + std::chrono::seconds(1); }
  work_kind kind() const override { return work_kind::window; }
  bool divisible() const override { return slider_.under_way(); }
  std::int64_t rows_left() const override {
    return needs() == stage::slide ? slider_.layers_left() : task::rows_left();
  }
  int pages_to_slide() const override { return slider_.pages(); }
  void slide(std::int64_t layers) override;
  void on_prefilled() override;

private:
  duplex_session& session_;
  window_slider slider_;
};

} // namespace parley::inference
