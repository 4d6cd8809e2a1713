#include "inference/engine/stages.hpp"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

// Encoding sound for tasks: streams second by second, and whole clips.
namespace parley::inference {

void stages::hear(std::span<const session_id> ids) {
  struct part {
    task* by;
    at::Tensor rows;
  };
  std::vector<part> parts;
  parts.reserve(ids.size());
  for (auto* t : sessions_.needing(stage::hear, ids)) parts.push_back({t, {}});
  auto call = [this](std::span<part> batch) {
    std::vector<thinker::fresh_sound> sounds;
    sounds.reserve(batch.size());
    for (const auto& p : batch) sounds.push_back(p.by->next_sound());
    auto rows = with_.model.hear(sounds);
    for (auto i = std::size_t{0}; i < batch.size(); ++i) batch[i].rows = std::move(rows[i]);
  };
  for (auto& p : sessions_.isolated(std::move(parts), call))
    sessions_.step(*p.by, [&](task& t) { t.on_heard(std::move(p.rows)); });
}

void stages::hear_clips(session_id id) {
  auto* needs_it = sessions_.needing(stage::clips, id);
  if (!needs_it) return;
  sessions_.step(*needs_it, [](task& t) {
    auto& hearing = t.clips();
    if (hearing.advance()) t.on_clips_heard(hearing.take());
  });
}

} // namespace parley::inference
