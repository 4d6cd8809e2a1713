#include "inference/engine/stages.hpp"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

namespace parley::inference {

/// Encodes the next pieces of several tasks in one pass.
void stages::see(std::span<const schedule::piece> plan) {
  struct part {
    task* by;
    std::vector<const vision::patch_grid*> pieces;
    at::Tensor rows;
  };
  std::vector<part> parts;
  parts.reserve(plan.size());
  for (const auto& p : plan)
    if (auto* needs_it = sessions_.needing(stage::see, p.session))
      sessions_.step(*needs_it, [&](task& t) { parts.push_back({&t, t.next_pieces(p.rows), {}}); });
  auto call = [this](std::span<part> batch) {
    std::vector<const vision::patch_grid*> pieces;
    for (const auto& p : batch) pieces.insert(pieces.end(), p.pieces.begin(), p.pieces.end());
    const auto rows = with_.model.sight().see(pieces);
    auto begin = std::int64_t{0};
    for (auto& p : batch) {
      p.rows = rows.narrow(0, begin, std::ssize(p.pieces));
      begin += std::ssize(p.pieces);
    }
  };
  for (auto& p : sessions_.isolated(std::move(parts), call))
    sessions_.step(*p.by, [&](task& t) { t.on_seen(std::move(p.rows)); });
}

} // namespace parley::inference
