#include "inference/kernels/draw.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/temperature.hpp"
#include "inference/tts/sampler.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

// Whatever sampling options a client sends, a draw returns a possible token or reports that there is none.
using namespace parley::inference;
using namespace parley::inference::llm;

namespace {

using doubles = std::numeric_limits<double>;
using floats = std::numeric_limits<float>;

constexpr auto impossible = -floats::infinity();

constexpr std::array edges{0.0,
                           -0.0,
                           doubles::denorm_min(),
                           1e-300,
                           double{floats::denorm_min()},
                           1e-39,
                           1e-38,
                           1e-5,
                           9.9e-5,
                           1e-4,
                           0.1,
                           0.7,
                           1.0,
                           2.0,
                           5.0,
                           1e4,
                           1e38,
                           1e39,
                           1e300,
                           1e308,
                           doubles::max(),
                           -1.0,
                           -1e308};
constexpr std::array strange{doubles::infinity(), -doubles::infinity(), doubles::quiet_NaN()};

constexpr token_id count = 70; // more than one block of the filters
const duplex_sampling_ids ids{.chunk_eos = 5, .turn_eos = 4, .listen = 3, .forbidden = {5, 6}};

class numbers final : public random_source {
public:
  explicit numbers(std::mt19937& random) : random_(random) {}
  double next() override {
    constexpr std::array extreme{0.0, 0.5, 0x1.fffffffffffffp-1, doubles::denorm_min()};
    const auto which = random_() % 8;
    return which < extreme.size() ? extreme[which] : std::uniform_real_distribution<>(0, 1)(random_);
  }

private:
  std::mt19937& random_;
};

std::vector<float> row_of(int kind, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 10);
  std::vector<float> row(count);
  for (auto& l : row) {
    switch (kind) {
    case 0: l = normal(random); break;
    case 1: l = -std::abs(normal(random)) - 1; break;
    case 2: l = 0; break;
    case 3: l = random() % 4 == 0 ? normal(random) : impossible; break;
    case 4: l = random() % 2 == 0 ? floats::max() : floats::lowest(); break;
    case 5: l = floats::lowest(); break;
    case 6: l = random() % 2 == 0 ? floats::denorm_min() : -floats::denorm_min(); break;
    default: l = impossible; break;
    }
  }
  if (kind == 7) row[random() % row.size()] = 1; // the only possible token
  return row;
}
constexpr auto kinds_of_rows = 8;

double pick(std::mt19937& random) {
  return random() % 16 == 0 ? strange[random() % strange.size()] : edges[random() % edges.size()];
}

/// Tries every value of one option with the others at random, then all options at random.
template<class Options, class Set, class Try>
void sweep(int options, Set set, Try attempt) {
  std::mt19937 random(1);
  auto values = std::vector<double>(edges.begin(), edges.end());
  values.insert(values.end(), strange.begin(), strange.end());
  for (auto swept = -1; swept < options; ++swept)
    for (auto round = std::size_t{0}; round < (swept < 0 ? 400 : values.size()); ++round)
      for (auto kind = 0; kind < kinds_of_rows; ++kind) {
        Options how;
        for (auto i = 0; i < options; ++i)
          if (swept < 0 || random() % 3 == 0) set(how, i, pick(random), random);
        if (swept >= 0) set(how, swept, values[round], random);
        attempt(how, row_of(kind, random), random);
      }
}

int some_count(double of, std::mt19937& random) {
  constexpr std::array counts{
      0, 1, 2, 64, 69, 70, 71, std::numeric_limits<int>::max(), -1, std::numeric_limits<int>::min()};
  return std::isfinite(of) && std::abs(of) < 1e9 ? static_cast<int>(of) : counts[random() % counts.size()];
}

void set_duplex(duplex_sampling& how, int option, double value, std::mt19937& random) {
  switch (option) {
  case 0: how.base.temperature = value; break;
  case 1: how.base.top_p = value; break;
  case 2: how.base.repetition_penalty = value; break;
  case 3: how.base.length_penalty = value; break;
  case 4: how.listen_prob_scale = value; break;
  case 5: how.base.top_k = some_count(value, random); break;
  case 6: how.base.repetition_window = some_count(value, random); break;
  default: how.listen_top_k = some_count(value, random); break;
  }
}
constexpr auto duplex_options_swept = 8;

void set_chat(chat_sampling& how, int option, double value, std::mt19937& random) {
  switch (option) {
  case 0: how.temperature = value; break;
  case 1: how.top_p = value; break;
  case 2: how.repetition_penalty = value; break;
  case 3: how.length_penalty = value; break;
  default: how.top_k = some_count(value, random); break;
  }
}
constexpr auto chat_options_swept = 5;

std::vector<token_id> some_tokens(std::mt19937& random) {
  std::vector<token_id> tokens(random() % 100);
  for (auto& t : tokens) t = static_cast<token_id>(random() % (count + 2)); // some are out of range
  return tokens;
}

std::size_t possible(const std::vector<float>& row) {
  return static_cast<std::size_t>(std::ranges::count_if(row, [](float l) { return l != impossible; }));
}

} // namespace

TEST_CASE("a duplex draw at the edges of its options") {
  auto sampled = 0;
  for (const auto& how_made : {quirks{}, quirks::literal()}) {
    sweep<duplex_sampling>(duplex_options_swept, set_duplex,
                           [&](const duplex_sampling& how, std::vector<float> row, std::mt19937& random) {
                             const auto before = row;
                             auto history = some_tokens(random);
                             numbers chance(random);
                             sampling_scratch scratch;
                             std::vector<draw_record> records;
                             scratch.records = &records;
                             try {
                               const auto token = draw_duplex(row, ids, how, how_made, history, chance, scratch);
                               REQUIRE((token >= 0 && token < count));
                               // The controls for listening may choose `listen` even if the model excludes it.
                               if (token != ids.listen) REQUIRE(before[static_cast<std::size_t>(token)] != impossible);
                               for (const auto& r : records) REQUIRE_FALSE(std::isnan(r.margin));
                               ++sampled;
                             } catch (const std::runtime_error&) {
                               REQUIRE(possible(row) == 0); // every token was impossible, forbidden or penalised away
                             }
                           });
  }
  CHECK(sampled > 5000); // else this shows little
}

TEST_CASE("a chat draw at the edges of its options") {
  const std::vector<token_id> terminators{4, 9}, unspeakable{5, 6, 68};
  auto sampled = 0;
  sweep<chat_sampling>(chat_options_swept, set_chat,
                       [&](const chat_sampling& how, std::vector<float> row, std::mt19937& random) {
                         const auto before = row;
                         const auto seen = some_tokens(random);
                         numbers chance(random);
                         sampling_scratch scratch;
                         try {
                           const auto token = draw_chat(row, unspeakable, terminators, seen, how, chance, scratch);
                           REQUIRE((token >= 0 && token < count));
                           REQUIRE(before[static_cast<std::size_t>(token)] != impossible);
                           REQUIRE(std::ranges::find(unspeakable, token) == unspeakable.end());
                           ++sampled;
                         } catch (const std::runtime_error&) {
                           REQUIRE(possible(row) == 0);
                         }
                       });
  CHECK(sampled > 2000);
}

TEST_CASE("a speech token at the edges of its options") {
  auto sampled = 0;
  sweep<speech::tts_sampling>(
      2,
      [](speech::tts_sampling& how, int option, double value, std::mt19937& random) {
        if (option == 0)
          how.temperature = static_cast<float>(std::min(value, 1e30));
        else
          how.top_k = some_count(value, random);
      },
      [&](const speech::tts_sampling& how, std::vector<float> row, std::mt19937& random) {
        const auto said = some_tokens(random);
        std::vector<std::int64_t> previous;
        std::ranges::copy_if(said, std::back_inserter(previous), [](auto t) { return t < count; });
        std::vector<float> probabilities;
        numbers chance(random);
        try {
          speech::tts_probabilities(row, previous, how, 2, probabilities);
          const auto token = speech::tts_draw(probabilities, chance.next());
          REQUIRE((token >= 0 && token < count));
          REQUIRE(token != 2);
          REQUIRE(row[static_cast<std::size_t>(token)] != impossible);
          ++sampled;
        } catch (const std::runtime_error&) {
          const auto least = *std::ranges::min_element(row), most = *std::ranges::max_element(row);
          REQUIRE((most == floats::max() || least == floats::lowest() || possible(row) <= 1));
        }
      });
  CHECK(sampled > 200);
}

TEST_CASE("a temperature next to nothing is greedy") {
  std::mt19937 random(2);
  for (auto temperature : {0.0, -0.0, doubles::denorm_min(), 1e-300, 1e-39, 9.9e-5, -1.0, doubles::quiet_NaN()}) {
    CHECK(takes_the_likeliest(temperature));
    for (auto round = 0; round < 50; ++round) {
      const auto row = row_of(0, random);
      numbers chance(random);
      sampling_scratch scratch;
      auto once = row, again = row;
      chat_sampling warm, greedy;
      warm.temperature = temperature;
      warm.top_p = 1;
      warm.top_k = 0;
      greedy.greedy = true;
      CHECK(draw_chat(once, {}, {}, {}, warm, chance, scratch) ==
            draw_chat(again, {}, {}, {}, greedy, chance, scratch));
      duplex_sampling decides, surely;
      decides.base.temperature = temperature;
      surely.base.greedy = true;
      std::vector<token_id> history, other;
      once = again = row;
      CHECK(draw_duplex(once, ids, decides, {}, history, chance, scratch) ==
            draw_duplex(again, ids, surely, {}, other, chance, scratch));
    }
  }
  CHECK_FALSE(takes_the_likeliest(1e-4));
  CHECK_FALSE(takes_the_likeliest(2));
}

TEST_CASE("weights that are no numbers draw nothing") {
  const auto nan = floats::quiet_NaN(), infinite = floats::infinity();
  for (const auto& weights : {std::vector<float>{}, {0, 0, 0}, {nan, nan}, {1, nan, 1}, {1, infinite}, {-1, 0.5F}})
    CHECK_THROWS_AS(cpu::draw(weights, 0.5), std::runtime_error);
  CHECK(cpu::draw(std::vector<float>{0, 1, 0}, 0).index == 1);
}
