#pragma once

#include "inference/engine/tasks/duplex_session.hpp"

#include <vector>

namespace parley::inference {

/// Behind a unit of a session with a window: feeds the end of the unit at once, and slides the window if the cache has
/// become too long (docs/model/thinker.md 5.6). The unit has been answered, so the session ends when this fails.
class window_task final : public task {
public:
  /// `unit_began`: its time counts as the unit's.
  window_task(duplex_session& of, engine_clock::time_point unit_began);

  void begin() override;
  bool is_unit() const override { return true; }
  void on_prefilled() override;

private:
  void slide();

  duplex_session& session_;
  bool closed_ = false;                    ///< the unit's end is in the cache: what is fed now is part of a slide
  std::vector<duplex::window_step> steps_; ///< still to be done, oldest first
  llm::kv_segment moved_;                  ///< rows behind the step that is under way
};

} // namespace parley::inference
