#include "inference/tts/device_draw.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace parley::inference::speech {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

} // namespace

device_draw::device_draw(std::span<const tts_choice> how, std::int64_t codes, std::int64_t steps,
                         packed_upload& numbers)
    : sessions_(std::ssize(how)), codes_(codes), steps_(steps), window_(std::max(0, how.front().rules.penalty_window)),
      top_k_(how.front().rules.top_k) {
  const auto recent = at::full({sessions_, window_ + steps}, codes, at::kLong);
  const auto chances = at::empty({sessions_, steps}, at::kDouble);
  const auto banned = at::empty({sessions_, steps}, at::kBool), narrow = at::empty({sessions_, 2}, at::kBool);
  const auto rules = at::empty({2, sessions_, 1}, at::kFloat), share = at::empty({sessions_, 1}, at::kDouble);
  for (std::int64_t i = 0; i < sessions_; ++i) {
    const auto& one = how[static_cast<std::size_t>(i)];
    auto* own = recent.mutable_data_ptr<std::int64_t>() + i * (window_ + steps);
    std::ranges::copy(one.recent, own + window_ - std::ssize(one.recent));
    std::ranges::copy(one.chances, chances.mutable_data_ptr<double>() + i * steps);
    for (std::int64_t k = 0; k < steps; ++k) banned.mutable_data_ptr<bool>()[i * steps + k] = k < one.banned_steps;
    auto* narrows = narrow.mutable_data_ptr<bool>() + 2 * i;
    narrows[0] = one.rules.narrow && !one.recent.empty();
    narrows[1] = one.rules.narrow;
    narrows_ = narrows_ || one.rules.narrow;
    rules.mutable_data_ptr<float>()[i] = one.rules.temperature;
    rules.mutable_data_ptr<float>()[sessions_ + i] = one.rules.repetition_penalty;
    share.mutable_data_ptr<double>()[i] = static_cast<double>(one.rules.top_p);
  }
  recent_part_ = numbers.add(recent);
  chance_part_ = numbers.add(chances);
  banned_part_ = numbers.add(banned);
  narrow_part_ = numbers.add(narrow);
  rule_part_ = numbers.add(rules);
  share_part_ = numbers.add(share);
}

void device_draw::use(const packed_upload& sent) {
  recent_ = sent[recent_part_].view({sessions_, -1});
  chances_ = sent[chance_part_].view({sessions_, -1});
  banned_ = sent[banned_part_].view({sessions_, -1});
  narrows_in_ = sent[narrow_part_].view({sessions_, -1});
  const auto rules = sent[rule_part_].view({2, sessions_, 1});
  temperature_ = rules[0];
  penalty_ = rules[1];
  share_ = sent[share_part_].view({sessions_, 1});
  chosen_ = at::empty({sessions_, steps_}, recent_.options());
}

/// As `narrow` of sampler.cpp.
at::Tensor device_draw::narrowed(const at::Tensor& scores) const {
  auto count = codes_;
  if (top_k_ > 0) count = std::min(count, std::max<std::int64_t>(top_k_, tts_min_candidates));
  const auto best = std::get<0>(scores.topk(count));
  const auto most = best.narrow(1, 0, 1);
  const auto total = (scores - most).exp_().sum(1, true, at::kDouble);
  const auto weights = (best - most).to(at::kDouble).exp_();
  const auto dropped = weights.cumsum(1).sub_(weights) >= total * share_;
  dropped.narrow(1, 0, std::min<std::int64_t>(count, tts_min_candidates)).fill_(false);
  const auto threshold = best.masked_fill(dropped, infinite).amin(1, true);
  return scores.masked_fill((scores < threshold).logical_and_(narrows_in_.narrow(1, step_ > 0 ? 1 : 0, 1)), -infinite);
}

at::Tensor device_draw::next(const at::Tensor& logits) {
  auto scores = logits / temperature_;
  const auto seen = recent_.narrow(1, step_, window_);
  const auto counts = at::zeros({sessions_, codes_ + 1}, logits.options()).scatter_(1, seen, 1, "add");
  const auto factor = at::pow(penalty_, counts.narrow(1, 0, codes_));
  scores = at::where(scores < 0, scores * factor, scores / factor);
  if (narrows_) scores = narrowed(scores);
  scores.select(1, codes_ - 1).masked_fill_(banned_.select(1, step_), -infinite);
  const auto below = (scores - scores.amax(1, true)).exp_().cumsum(1, at::kDouble);
  const auto total = below.narrow(1, codes_ - 1, 1);
  const auto target = chances_.narrow(1, step_, 1) * total;
  // If rounding leaves none, the last one with a weight.
  const auto token = at::minimum((below <= target).sum(1, true), (below < total).sum(1, true));
  recent_.narrow(1, window_ + step_, 1).copy_(token);
  const auto sound = (total > 0).logical_and_(total < infinite);
  chosen_.narrow(1, step_, 1).copy_(at::where(sound, token, -1));
  ++step_;
  return token.squeeze(1);
}

} // namespace parley::inference::speech
