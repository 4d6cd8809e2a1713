#include "inference/llm/sampling.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

// Draws from what a device sends of a row are those from the whole row.
using namespace parley::inference;
using namespace parley::inference::llm;

namespace {

constexpr token_id vocabulary = 2000;
constexpr std::size_t listed = 128;
const duplex_sampling_ids ids{.chunk_eos = 1500, .turn_eos = 1400, .listen = 3, .forbidden = {1500, 700}};
const std::vector<token_id> terminators{1999, 1400};

/// As a model in bfloat16 makes them: many are equal.
float rounded(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xFFFF0000U);
}

std::vector<float> some_row(std::mt19937& random) {
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> row(vocabulary);
  for (auto& l : row) l = rounded(normal(random));
  // The tokens that the rules name are often among the likeliest.
  for (auto id : {ids.chunk_eos, ids.turn_eos, ids.listen})
    if (random() % 2 == 0) row[static_cast<std::size_t>(id)] = rounded(12 + normal(random) / 2);
  return row;
}

/// What a device sends of the row.
short_row shortened(const std::vector<float>& row) {
  std::vector<token_id> all(row.size());
  std::iota(all.begin(), all.end(), 0);
  const auto logit = [&](token_id id) { return row[static_cast<std::size_t>(id)]; };
  std::ranges::sort(all, std::greater<>{}, logit);
  all.resize(listed);
  short_row to{{}, {}, logit(all.back()), 0, 0};
  const auto largest = logit(all.front());
  for (auto id : {ids.chunk_eos, ids.turn_eos, ids.listen, terminators.front()}) all.push_back(id);
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  for (auto id : all) {
    to.ids.push_back(id);
    to.logits.push_back(logit(id));
  }
  for (token_id id = 0; id < vocabulary; ++id) {
    if (id == ids.chunk_eos) to.before_chunk_eos = to.total;
    to.total += std::exp(double{logit(id)} - largest);
  }
  return to;
}

std::vector<token_id> some_history(std::mt19937& random, const std::vector<float>& row) {
  std::vector<token_id> history(random() % 200);
  for (auto& id : history) id = static_cast<token_id>(random() % vocabulary);
  history.push_back(std::ranges::max_element(row) - row.begin());
  return history;
}

template<class T>
T one_of(std::mt19937& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
}

duplex_sampling some_duplex(std::mt19937& random) {
  duplex_sampling how;
  how.base.greedy = random() % 4 == 0;
  how.base.temperature = one_of(random, {0.7, 1.0, 2.0});
  how.base.top_k = one_of(random, {1, 5, 20, 100});
  how.base.top_p = one_of(random, {0.8, 0.95, 1.0});
  how.base.repetition_penalty = one_of(random, {1.0, 1.05, 1.3, 0.8});
  how.base.length_penalty = one_of(random, {1.0, 1.1, 0.9});
  how.listen_prob_scale = one_of(random, {1.0, 0.3, 5.0});
  if (random() % 3 == 0) how.listen_top_k = one_of(random, {1, 5, 40});
  return how;
}

chat_sampling some_chat(std::mt19937& random) {
  chat_sampling how;
  how.greedy = random() % 4 == 0;
  how.temperature = one_of(random, {0.7, 1.0});
  how.top_k = one_of(random, {1, 20, 100});
  how.top_p = one_of(random, {0.8, 1.0});
  how.repetition_penalty = one_of(random, {1.0, 1.02, 0.9});
  how.length_penalty = one_of(random, {1.0, 1.1});
  how.exact_top_k = random() % 2 == 0;
  return how;
}

constexpr auto trials = 4000;

} // namespace

TEST_CASE("a duplex draw from a short row is that from the whole row") {
  std::mt19937 random(3);
  auto decided = 0;
  for (auto trial = 0; trial < trials; ++trial) {
    auto row = some_row(random);
    const auto how = some_duplex(random);
    const auto quirk = random() % 2 == 0 ? quirks::literal() : quirks{};
    const auto before = some_history(random, row);
    random_stream whole_chance(random(), substream::text), short_chance = whole_chance;
    const auto unused = short_chance.where();
    auto whole_history = before, short_history = before;
    sampling_scratch scratch;
    const auto from_short = draw_duplex(shortened(row), ids, how, quirk, short_history, short_chance, scratch);
    const auto expected = draw_duplex(row, ids, how, quirk, whole_history, whole_chance, scratch);
    INFO("trial " << trial);
    if (!from_short) {
      CHECK(short_history == before);
      CHECK(short_chance.where() == unused);
      continue;
    }
    ++decided;
    CHECK(*from_short == expected);
    CHECK(short_history == whole_history);
    CHECK(short_chance.where() == whole_chance.where());
  }
  CHECK(decided > trials * 0.9);
}

TEST_CASE("a chat draw from a short row is that from the whole row") {
  std::mt19937 random(4);
  auto decided = 0;
  for (auto trial = 0; trial < trials; ++trial) {
    auto row = some_row(random);
    const auto how = some_chat(random);
    const auto seen = some_history(random, row);
    const std::vector<token_id> banned{17, 18, *std::ranges::max_element(seen)};
    random_stream whole_chance(random(), substream::text), short_chance = whole_chance;
    sampling_scratch scratch;
    const auto from_short = draw_chat(shortened(row), banned, terminators, seen, how, short_chance, scratch);
    const auto expected = draw_chat(row, banned, terminators, seen, how, whole_chance, scratch);
    INFO("trial " << trial);
    if (!from_short) continue;
    ++decided;
    CHECK(*from_short == expected);
    CHECK(short_chance.where() == whole_chance.where());
  }
  CHECK(decided > trials * 0.75); // with a top-k of 100, equals of the last logit often reach the end of the list
}

TEST_CASE("a short row decides nothing that depends on the other logits") {
  std::mt19937 random(5);
  sampling_scratch scratch;
  std::vector<token_id> history;
  const auto try_draw = [&](const std::vector<float>& row, const duplex_sampling& how) {
    random_stream chance(1, substream::text);
    return draw_duplex(shortened(row), ids, how, {}, history, chance, scratch);
  };
  duplex_sampling greedy;
  greedy.base.greedy = true;
  CHECK(try_draw(some_row(random), greedy));
  CHECK_FALSE(try_draw(std::vector<float>(vocabulary, 2.0F), greedy)); // all are equal
  duplex_sampling without_top_k;
  without_top_k.base.top_k = 0;
  without_top_k.base.length_penalty = 1.0;
  auto row = some_row(random);
  row[static_cast<std::size_t>(ids.chunk_eos)] = -20; // not drawn first
  CHECK_FALSE(try_draw(row, without_top_k));
  std::vector<draw_record> records;
  scratch.records = &records;
  CHECK_FALSE(try_draw(some_row(random), greedy));
  CHECK(records.empty());
}

TEST_CASE("a short row of no numbers is refused") {
  std::mt19937 random(6);
  auto row = some_row(random);
  auto bad = shortened(row);
  bad.total = std::numeric_limits<double>::quiet_NaN();
  std::vector<token_id> history;
  random_stream chance(1, substream::text);
  sampling_scratch scratch;
  CHECK_THROWS_AS(draw_duplex(bad, ids, {}, {}, history, chance, scratch), std::runtime_error);
  CHECK_THROWS_AS(draw_chat(bad, {}, terminators, {}, {}, chance, scratch), std::runtime_error);
}
