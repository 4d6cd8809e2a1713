#include "inference/llm/sampling.hpp"

#include "inference/kernels/draw.hpp"
#include "inference/temperature.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

namespace parley::inference::llm {

namespace {

constexpr auto minus_infinity = -std::numeric_limits<float>::infinity();

/// A logit after an option has changed it, clamped to the largest float, so that no weight overflows.
float to_logit(double changed) {
  constexpr auto most = double{std::numeric_limits<float>::max()};
  return std::isinf(changed) && changed < 0 ? minus_infinity : static_cast<float>(std::clamp(changed, -most, most));
}

/// Changes a logit, but keeps impossible tokens impossible and ignores results that are NaN, such as 0 times infinity.
void change(float& logit, double to) {
  if (logit != minus_infinity && !std::isnan(to)) logit = to_logit(to);
}

/// The largest logit; throws if none is finite.
float largest(std::span<const float> logits) {
  const auto [top, sane] = cpu::find_peak(logits);
  if (!sane || !std::isfinite(top)) throw std::runtime_error("the logits are not numbers");
  return top;
}

/// The index of the largest logit; the lowest index among equals.
std::size_t argmax(std::span<const float> logits) {
  return static_cast<std::size_t>(std::ranges::find(logits, largest(logits)) - logits.begin());
}

token_id take_largest(std::span<const float> logits, sampling_scratch& scratch) {
  auto best = argmax(logits);
  if (scratch.records) {
    auto second = minus_infinity;
    for (auto i = std::size_t{0}; i < logits.size(); ++i)
      if (i != best) second = std::max(second, logits[i]);
    scratch.records->push_back({0, static_cast<token_id>(best), double{logits[best]} - second, 0});
  }
  return static_cast<token_id>(best);
}

/// The first index, ascending, whose cumulative weight exceeds u times the total. `weight(i)` may be evaluated twice.
/// Throws std::runtime_error unless the total is positive and finite.
template<class Weight>
std::size_t invert(std::size_t count, double u, Weight weight, draw_record& record) {
  auto total = 0.0;
  for (auto i = std::size_t{0}; i < count; ++i) total += weight(i);
  if (!(total > 0) || !std::isfinite(total)) throw std::runtime_error("no token is left to be sampled");
  auto target = u * total;
  auto below = 0.0;
  auto chosen = count;
  for (auto i = std::size_t{0}; i < count; ++i) {
    auto w = weight(i);
    if (!(w > 0)) continue;
    chosen = i;
    if (below + w > target) break;
    below += w;
  }
  auto edge = weight(chosen);
  record.margin = std::min(std::abs(target - below), std::abs(below + edge - target)) / total;
  return chosen;
}

token_id draw_raw(std::span<const float> logits, random_source& chance, sampling_scratch& scratch) {
  auto& weights = scratch.heap;
  weights.resize(logits.size());
  cpu::exponentials(logits, largest(logits), weights.data());
  draw_record record{chance.next(), 0, 0, static_cast<int>(logits.size())};
  const auto [index, below, total] = cpu::draw(weights, record.u);
  record.token = static_cast<token_id>(index);
  const auto target = record.u * total;
  record.margin = std::min(std::abs(target - below), std::abs(below + double{weights[index]} - target)) / total;
  if (scratch.records) scratch.records->push_back(record);
  return record.token;
}

token_id draw_filtered(random_source& chance, sampling_scratch& scratch) {
  const auto& kept = scratch.kept;
  draw_record record{chance.next(), 0, 0, static_cast<int>(kept.size())};
  record.token = kept[invert(
                          kept.size(), record.u, [&](std::size_t i) { return kept[i].weight; }, record)]
                     .id;
  if (scratch.records) scratch.records->push_back(record);
  return record.token;
}

/// Number of logits that are tested as a block before single ones are examined.
constexpr std::size_t stretch = 64;

/// The k-th largest value, found with a min-heap; most logits are rejected in blocks.
float kth_largest(std::span<const float> logits, std::size_t k, std::vector<float>& heap) {
  heap.assign(logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(k));
  std::make_heap(heap.begin(), heap.end(), std::greater<>{});
  for (auto rest = logits.subspan(k); !rest.empty(); rest = rest.subspan(std::min(stretch, rest.size()))) {
    const auto here = rest.first(std::min(stretch, rest.size()));
    if (!cpu::any_above(here, heap.front())) continue;
    for (auto l : here) {
      if (l <= heap.front()) continue;
      std::pop_heap(heap.begin(), heap.end(), std::greater<>{});
      heap.back() = l;
      std::push_heap(heap.begin(), heap.end(), std::greater<>{});
    }
  }
  return heap.front();
}

void ban(std::span<float> logits, std::span<const token_id> ids) {
  for (auto id : ids)
    if (static_cast<std::size_t>(id) < logits.size()) logits[static_cast<std::size_t>(id)] = minus_infinity;
}

void divide_by_sign(float& logit, double by) {
  change(logit, logit > 0 ? logit / by : logit * by);
}

/// Calls `apply`, which changes a logit, once for each different id in `seen`.
template<class Apply>
void for_each_seen(std::span<float> logits, std::span<const token_id> seen, sampling_scratch& scratch, Apply apply) {
  auto& ids = scratch.kept;
  ids.clear();
  for (auto id : seen)
    if (static_cast<std::size_t>(id) < logits.size()) ids.push_back({id, 0, 0});
  auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::sort(ids.begin(), ids.end(), by_id);
  auto end = std::unique(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a.id == b.id; });
  for (auto at = ids.begin(); at != end; ++at) apply(logits[static_cast<std::size_t>(at->id)]);
}

} // namespace

duplex_sampling_ids make_duplex_sampling_ids(const tokenizer& tokens, const quirks& how) {
  duplex_sampling_ids ids;
  ids.chunk_eos = tokens.id("<|chunk_eos|>");
  ids.turn_eos = tokens.id("<|turn_eos|>");
  ids.listen = how.listen_controls_act_on_im_end ? tokens.eos() : tokens.id("<|listen|>");
  ids.forbidden.push_back(tokens.id("<|tts_pad|>"));
  ids.forbidden.insert(ids.forbidden.end(), tokens.bad_token_ids().begin(), tokens.bad_token_ids().end());
  ids.forbidden.push_back(ids.chunk_eos);
  return ids;
}

void filter_candidates(std::span<const float> logits, double temperature, int top_k, double top_p, bool exact_top_k,
                       sampling_scratch& scratch) {
  auto k = static_cast<std::size_t>(std::max(top_k, 0));
  auto floor = minus_infinity;
  if (k > 0 && k < logits.size()) floor = kth_largest(logits, k, scratch.heap);
  auto& kept = scratch.kept;
  kept.clear();
  auto top = minus_infinity;
  for (auto i = std::size_t{0}; i < logits.size(); ++i) {
    if (logits[i] >= floor && logits[i] != minus_infinity) {
      auto scaled = to_logit(logits[i] / temperature);
      kept.push_back({static_cast<token_id>(i), scaled, 0});
      top = std::max(top, scaled);
    }
  }
  auto total = 0.0;
  for (auto& c : kept) {
    c.weight = std::exp(c.logit - top);
    total += c.weight;
  }
  if ((top_p > 0 && top_p < 1) || (exact_top_k && k > 0 && kept.size() > k)) {
    std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.logit > b.logit; });
    if (exact_top_k && k > 0 && kept.size() > k) {
      for (auto i = k; i < kept.size(); ++i) total -= kept[i].weight;
      kept.resize(k);
    }
    if (top_p > 0 && top_p < 1) {
      // A token is dropped if those before it already exceed top_p; the first one always stays.
      auto before = 0.0;
      auto end = kept.begin();
      while (end != kept.end() && (end == kept.begin() || before <= top_p * total)) before += (end++)->weight;
      kept.erase(end, kept.end());
    }
    std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  }
}

token_id draw_duplex(std::span<float> logits, const duplex_sampling_ids& ids, const duplex_sampling& options,
                     const quirks& how, std::vector<token_id>& history, random_source& chance,
                     sampling_scratch& scratch) {
  const auto& base = options.base;
  auto greedy = base.greedy || takes_the_likeliest(base.temperature);
  auto first = greedy ? take_largest(logits, scratch) : draw_raw(logits, chance, scratch);
  if (first == ids.chunk_eos) return first;
  ban(logits, ids.forbidden);
  if (base.repetition_penalty != 1.0) {
    auto window = std::min(history.size(), static_cast<std::size_t>(std::max(base.repetition_window, 1)));
    auto recent = std::span<const token_id>(history).last(window);
    auto by = base.repetition_penalty;
    for_each_seen(logits, recent, scratch, [by, always = how.penalty_divides_negative_logits](float& l) {
      if (always)
        change(l, l / by);
      else
        divide_by_sign(l, by);
    });
  }
  if (base.length_penalty != 1.0) divide_by_sign(logits[static_cast<std::size_t>(ids.turn_eos)], base.length_penalty);
  auto& listen = logits[static_cast<std::size_t>(ids.listen)];
  if (options.listen_prob_scale != 1.0) {
    // The reference multiplies the logit, whatever its sign; its documentation speaks of a factor on the probability.
    auto scale = options.listen_prob_scale;
    change(listen, how.listen_controls_act_on_im_end ? listen * scale : listen + std::log(scale));
  }
  if (options.listen_top_k) {
    auto better = std::count_if(logits.begin(), logits.end(), [l = listen](float other) { return other > l; });
    if (better < *options.listen_top_k) return ids.listen;
  }
  auto token = token_id{};
  if (greedy) {
    token = take_largest(logits, scratch);
  } else {
    filter_candidates(logits, base.temperature, base.top_k, base.top_p, false, scratch);
    token = draw_filtered(chance, scratch);
  }
  history.push_back(token);
  return token;
}

token_id draw_chat(std::span<float> logits, std::span<const token_id> banned, std::span<const token_id> terminators,
                   std::span<const token_id> seen, const chat_sampling& options, random_source& chance,
                   sampling_scratch& scratch) {
  largest(logits); // throws for rows with NaN
  ban(logits, banned);
  if (options.repetition_penalty != 1.0)
    for_each_seen(logits, seen, scratch, [by = options.repetition_penalty](float& l) { divide_by_sign(l, by); });
  if (options.length_penalty != 1.0)
    for (auto id : terminators) divide_by_sign(logits[static_cast<std::size_t>(id)], options.length_penalty);
  if (options.greedy || takes_the_likeliest(options.temperature)) return take_largest(logits, scratch);
  filter_candidates(logits, options.temperature, options.top_k, options.top_p, options.exact_top_k, scratch);
  return draw_filtered(chance, scratch);
}

} // namespace parley::inference::llm
