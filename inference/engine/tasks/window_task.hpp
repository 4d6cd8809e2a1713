#pragma once

#include "inference/engine/tasks/duplex_session.hpp"

#include <vector>

namespace parley::inference {

/// Follows each unit of a session with a window: feeds the end of the unit, and slides the window if the cache has
/// become too long (docs/model/thinker.md 5.6). The unit was already answered, so a failure here ends the session.
class window_task final : public task {
public:
  /// `unit_began`: this task's time is counted as part of the unit.
  window_task(duplex_session& of, engine_clock::time_point unit_began);

  void begin() override;
  bool is_unit() const override { return true; }
  std::int64_t rows_set_aside() const override { return moved_.rows(); }
  std::optional<std::int64_t> first_rewritten() const override;
  void on_prefilled() override;

private:
  void slide();

  duplex_session& session_;
  bool closed_ = false;                    ///< the unit's end is in the cache, so what is fed now is part of a slide
  std::vector<duplex::window_step> steps_; ///< steps left, in order
  llm::kv_segment moved_;                  ///< rows set aside by the current step
};

} // namespace parley::inference
