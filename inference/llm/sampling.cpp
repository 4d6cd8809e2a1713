#include "inference/llm/sampling.hpp"

#include "base/assert.hpp"
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

/// All logits of a row. A token's place is its id.
struct whole_row {
  std::span<float> logits;

  float* find(token_id id) const {
    return static_cast<std::size_t>(id) < logits.size() ? &logits[static_cast<std::size_t>(id)] : nullptr;
  }
  token_id id_at(std::size_t place) const { return static_cast<token_id>(place); }

  /// Whether every logit of at least `l` is in the row.
  bool has_all_from(float) const { return true; }

  /// What `apply` does to a logit that is not in the row.
  template<class Apply>
  void change_absent(Apply) const {}
};

/// The logits that a device has sent.
class listed_row {
public:
  explicit listed_row(short_row& row)
      : logits(row.logits), ids_(row.ids), sent_below_(row.others), below_(row.others) {}

  std::span<float> logits;

  float* find(token_id id) const {
    const auto at = std::ranges::lower_bound(ids_, id);
    return at != ids_.end() && *at == id ? &logits[static_cast<std::size_t>(at - ids_.begin())] : nullptr;
  }
  token_id id_at(std::size_t place) const { return ids_[place]; }

  bool has_all_from(float l) const { return l > below_ || below_ == minus_infinity; }

  /// `apply` must keep the order of logits.
  template<class Apply>
  void change_absent(Apply apply) {
    auto highest = sent_below_;
    apply(highest);
    below_ = std::max(below_, highest);
  }

private:
  std::span<const token_id> ids_; ///< ascending
  float sent_below_, below_;      ///< all other logits are at most this; after changes, the second
};

template<class Row>
void ban(const Row& row, std::span<const token_id> ids) {
  for (auto id : ids)
    if (auto* l = row.find(id)) *l = minus_infinity;
}

void divide_by_sign(float& logit, double by) {
  change(logit, logit > 0 ? logit / by : logit * by);
}

/// Calls `apply`, which changes a logit, once for each different id in `seen`.
template<class Row, class Apply>
void for_each_seen(Row& row, std::span<const token_id> seen, sampling_scratch& scratch, Apply apply) {
  auto& ids = scratch.kept;
  ids.clear();
  for (auto id : seen) ids.push_back({id, 0, 0});
  auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::sort(ids.begin(), ids.end(), by_id);
  auto end = std::unique(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a.id == b.id; });
  for (auto at = ids.begin(); at != end; ++at) {
    if (auto* l = row.find(at->id))
      apply(*l);
    else
      row.change_absent(apply);
  }
}

/// The likeliest token; none if one that is not in the row may be as likely.
template<class Row>
std::optional<token_id> likeliest(const Row& row, sampling_scratch& scratch) {
  const auto place = static_cast<std::size_t>(take_largest(row.logits, scratch));
  if (!row.has_all_from(row.logits[place])) return std::nullopt;
  return row.id_at(place);
}

/// What top-k, top-p and softmax leave; false if tokens that are not in the row may belong to it.
template<class Row>
bool filter(const Row& row, double temperature, int top_k, double top_p, bool exact_top_k, sampling_scratch& scratch) {
  if (!row.has_all_from(minus_infinity)) {
    const auto k = static_cast<std::size_t>(std::max(top_k, 0));
    if (k == 0 || k > row.logits.size() || !row.has_all_from(kth_largest(row.logits, k, scratch.heap))) return false;
  }
  filter_candidates(row.logits, temperature, top_k, top_p, exact_top_k, scratch);
  for (auto& c : scratch.kept) c.id = row.id_at(static_cast<std::size_t>(c.id));
  return true;
}

/// Throws for rows with NaN, and for rows without a possible token.
void check(const short_row& row) {
  if (!std::isfinite(row.total)) throw std::runtime_error("the logits are not numbers");
  largest(row.logits);
}

/// Whether the result of a repetition penalty keeps the order of logits.
bool keeps_order(double penalty) {
  return penalty > 0 && std::isfinite(penalty);
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

namespace {

/// The second draw of a duplex decision; none if the row does not suffice.
template<class Row>
std::optional<token_id> draw_second(Row row, const duplex_sampling_ids& ids, const duplex_sampling& options,
                                    const quirks& how, std::vector<token_id>& history, random_source& chance,
                                    sampling_scratch& scratch) {
  const auto& base = options.base;
  ban(row, ids.forbidden);
  if (base.repetition_penalty != 1.0) {
    auto window = std::min(history.size(), static_cast<std::size_t>(std::max(base.repetition_window, 1)));
    auto by = base.repetition_penalty;
    const auto recent = std::span<const token_id>(history).last(window);
    for_each_seen(row, recent, scratch, [by, always = how.penalty_divides_negative_logits](float& l) {
      if (always)
        change(l, l / by);
      else
        divide_by_sign(l, by);
    });
  }
  if (base.length_penalty != 1.0) divide_by_sign(*row.find(ids.turn_eos), base.length_penalty);
  auto& listen = *row.find(ids.listen);
  if (options.listen_prob_scale != 1.0) {
    // The reference multiplies the logit, whatever its sign; its documentation speaks of a factor on the probability.
    auto scale = options.listen_prob_scale;
    change(listen, how.listen_controls_act_on_im_end ? listen * scale : listen + std::log(scale));
  }
  if (options.listen_top_k) {
    auto better = std::ranges::count_if(row.logits, [l = listen](float other) { return other > l; });
    if (better < *options.listen_top_k) {
      if (!row.has_all_from(listen)) return std::nullopt;
      return ids.listen; // not in the history, as in the reference
    }
  }
  std::optional<token_id> token;
  if (base.greedy || takes_the_likeliest(base.temperature))
    token = likeliest(row, scratch);
  else if (filter(row, base.temperature, base.top_k, base.top_p, false, scratch))
    token = draw_filtered(chance, scratch);
  if (token) history.push_back(*token);
  return token;
}

template<class Row>
std::optional<token_id> draw_answer(Row row, std::span<const token_id> banned, std::span<const token_id> terminators,
                                    std::span<const token_id> seen, const chat_sampling& options, random_source& chance,
                                    sampling_scratch& scratch) {
  ban(row, banned);
  if (options.repetition_penalty != 1.0)
    for_each_seen(row, seen, scratch, [by = options.repetition_penalty](float& l) { divide_by_sign(l, by); });
  if (options.length_penalty != 1.0)
    for (auto id : terminators) divide_by_sign(*row.find(id), options.length_penalty);
  if (options.greedy || takes_the_likeliest(options.temperature)) return likeliest(row, scratch);
  if (!filter(row, options.temperature, options.top_k, options.top_p, options.exact_top_k, scratch))
    return std::nullopt;
  return draw_filtered(chance, scratch);
}

} // namespace

token_id draw_duplex(std::span<float> logits, const duplex_sampling_ids& ids, const duplex_sampling& options,
                     const quirks& how, std::vector<token_id>& history, random_source& chance,
                     sampling_scratch& scratch) {
  auto greedy = options.base.greedy || takes_the_likeliest(options.base.temperature);
  auto first = greedy ? take_largest(logits, scratch) : draw_raw(logits, chance, scratch);
  if (first == ids.chunk_eos) return first;
  const auto token = draw_second(whole_row{logits}, ids, options, how, history, chance, scratch);
  PARLEY_ASSERT(token, "a whole row leaves no draw open");
  return *token;
}

std::optional<token_id> draw_duplex(short_row row, const duplex_sampling_ids& ids, const duplex_sampling& options,
                                    const quirks& how, std::vector<token_id>& history, random_source& chance,
                                    sampling_scratch& scratch) {
  check(row);
  if (scratch.records || !keeps_order(options.base.repetition_penalty)) return std::nullopt;
  const listed_row listed(row);
  const auto before = chance.where();
  if (options.base.greedy || takes_the_likeliest(options.base.temperature)) {
    const auto first = likeliest(listed, scratch);
    if (!first || *first == ids.chunk_eos) return first;
  } else {
    // The draw from the whole row matters only if it ends the chunk.
    const auto target = chance.next() * row.total,
               weight = std::exp(double{*listed.find(ids.chunk_eos)} - largest(row.logits));
    if (row.before_chunk_eos <= target && target < row.before_chunk_eos + weight) return ids.chunk_eos;
  }
  const auto token = draw_second(listed, ids, options, how, history, chance, scratch);
  if (!token) chance.go_on_from(before);
  return token;
}

token_id draw_chat(std::span<float> logits, std::span<const token_id> banned, std::span<const token_id> terminators,
                   std::span<const token_id> seen, const chat_sampling& options, random_source& chance,
                   sampling_scratch& scratch) {
  largest(logits); // throws for rows with NaN
  const auto token = draw_answer(whole_row{logits}, banned, terminators, seen, options, chance, scratch);
  PARLEY_ASSERT(token, "a whole row leaves no draw open");
  return *token;
}

std::optional<token_id> draw_chat(short_row row, std::span<const token_id> banned,
                                  std::span<const token_id> terminators, std::span<const token_id> seen,
                                  const chat_sampling& options, random_source& chance, sampling_scratch& scratch) {
  check(row);
  if (scratch.records || !keeps_order(options.repetition_penalty)) return std::nullopt;
  return draw_answer(listed_row(row), banned, terminators, seen, options, chance, scratch);
}

} // namespace parley::inference::llm
