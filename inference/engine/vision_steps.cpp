#include "inference/duplex/frame_rows.hpp"
#include "inference/engine/isolate.hpp"
#include "inference/engine/omni_engine.hpp"

#include <ATen/ATen.h>

namespace parley::inference {

/// Has the pictures of a unit or turn sliced, from now on; null without any. None when there is too much to do already.
std::optional<std::shared_ptr<picture_order>>
omni_engine::order_pictures(session_id owner, std::vector<image_file> files, int max_slice_nums) {
  std::shared_ptr<picture_order> order;
  if (!files.empty() && pictures_) {
    order = std::make_shared<picture_order>();
    order->owner = owner;
    order->files = std::move(files);
    order->max_slice_nums = max_slice_nums;
    order->most_pieces = static_cast<std::size_t>(options_.info.context_tokens / model_->config().vision.query_num);
    if (!pictures_->take(order)) return std::nullopt;
  }
  return order;
}

/// The unit or turn that begins, and its pictures.
void omni_engine::take_pictures(session& s, std::shared_ptr<picture_order> pictures) {
  forget_pictures(s);
  s.pieces = 0;
  s.pictures = std::move(pictures);
}

void omni_engine::forget_pictures(session& s) {
  s.pictures.reset();
  s.seen.clear();
  s.pieces_seen = 0;
}

/// Sessions whose pictures are sliced go on.
void omni_engine::hand_out_pictures() {
  std::vector<session*> ready;
  for (const auto& [id, s] : sessions_)
    if (s->at == stage::look && s->pictures->done) ready.push_back(s.get());
  for (auto* s : ready) guarded(*s, [&] { pictures_sliced(*s); });
}

void omni_engine::pictures_sliced(session& s) {
  const auto& order = *s.pictures;
  if (!order.problem.empty()) {
    const auto number = std::to_string(order.troublemaker);
    fail(s, order.kind, (s.duplex ? "video_frames[" + number + "]: " : "picture " + number + ": ") + order.problem);
    return;
  }
  s.pieces = static_cast<int>(duplex::pieces_of(order.pictures).size());
  s.at = stage::see;
  if (s.chat) {
    begin_turn(s);
  } else if (auto why = objection(s, *s.duplex->unit, s.pieces)) {
    fail(s, why->first, why->second);
  }
}

/// The next pieces of several sessions in one pass through the encoder.
void omni_engine::see(const std::vector<pass_plan::piece>& plan) {
  struct part {
    session* owner;
    std::vector<const vision::patch_grid*> pieces;
    at::Tensor rows;
  };
  std::vector<part> parts;
  for (const auto& p : plan) {
    auto* s = find(p.session);
    if (!s || s->at != stage::see) continue;
    guarded(*s, [&] {
      auto all = duplex::pieces_of(s->pictures->pictures);
      auto begin = all.begin() + s->pieces_seen;
      parts.push_back({s, {begin, begin + p.rows}, {}});
    });
  }
  auto call = [this](std::span<part> batch) {
    std::vector<const vision::patch_grid*> pieces;
    for (const auto& p : batch) pieces.insert(pieces.end(), p.pieces.begin(), p.pieces.end());
    auto rows = model_->sight().see(pieces);
    auto begin = std::int64_t{0};
    for (auto& p : batch) {
      p.rows = rows.narrow(0, begin, std::ssize(p.pieces));
      begin += std::ssize(p.pieces);
    }
  };
  auto done = run_isolated(std::move(parts), call,
                           [this](const part& p, const char* what) { fail(*p.owner, failure::inference, what); });
  for (auto& p : done)
    guarded(*p.owner, [&] {
      auto& s = *p.owner;
      s.pieces_seen += std::ssize(p.pieces);
      s.seen.push_back(std::move(p.rows));
      if (s.pieces_seen == s.pieces) all_seen(s);
    });
}

void omni_engine::all_seen(session& s) {
  auto rows = at::cat(s.seen);
  if (s.duplex) {
    auto frames = duplex::frame_rows(*model_, s.pictures->pictures, rows);
    forget_pictures(s);
    gather_unit(s, frames);
    return;
  }
  forget_pictures(s);
  s.seen.push_back(rows.flatten(0, 1));
  if (s.clips.empty())
    embed_turn(s, {});
  else
    s.at = stage::clips;
}

} // namespace parley::inference
