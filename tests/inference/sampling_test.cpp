#include "inference/llm/sampling.hpp"

#include "inference/llm/token_scores.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <map>

using namespace parley::inference;
using namespace parley::inference::llm;

namespace {

class list_of_draws final : public random_source {
public:
  explicit list_of_draws(std::vector<double> numbers) : numbers_(std::move(numbers)) {}
  double next() override { return numbers_.at(used_++); }
  std::size_t used() const { return used_; }

private:
  std::vector<double> numbers_;
  std::size_t used_ = 0;
};

const duplex_sampling_ids ids{.chunk_eos = 5, .turn_eos = 4, .listen = 3, .forbidden = {5}};

token_id decide(std::vector<float> logits, const duplex_sampling& how, std::vector<double> numbers,
                const quirks& q = {}, std::vector<token_id> history = {}) {
  list_of_draws chance(std::move(numbers));
  sampling_scratch scratch;
  return draw_duplex(logits, ids, how, q, history, chance, scratch);
}

duplex_sampling greedy() {
  duplex_sampling how;
  how.base.greedy = true;
  return how;
}

} // namespace

TEST_CASE("a stream of random numbers is fixed by its seed and use, and uniform") {
  random_stream a(7, substream::text), b(7, substream::text), other(7, substream::noise), later(8, substream::text);
  auto sum = 0.0;
  auto same_other = 0, same_later = 0;
  for (auto i = 0; i < 10000; ++i) {
    auto x = a.next();
    REQUIRE(x == b.next());
    REQUIRE((x >= 0 && x < 1));
    same_other += x == other.next();
    same_later += x == later.next();
    sum += x;
  }
  CHECK(same_other == 0);
  CHECK(same_later == 0);
  CHECK(std::abs(sum / 10000 - 0.5) < 0.01);
}

TEST_CASE("filters keep what top-k and top-p name") {
  std::vector<float> logits{0.0F, 3.0F, 1.0F, 2.0F, 2.0F};
  sampling_scratch scratch;
  auto kept = [&] {
    std::vector<token_id> result;
    for (const auto& c : scratch.kept) result.push_back(c.id);
    return result;
  };
  filter_candidates(logits, 1.0, 2, 0, false, scratch);
  CHECK(kept() == std::vector<token_id>{1, 3, 4}); // tokens that tie with the k-th stay
  filter_candidates(logits, 1.0, 2, 0, true, scratch);
  CHECK(kept() == std::vector<token_id>{1, 3}); // ... or are dropped
  filter_candidates(logits, 1.0, 0, 0.5, false, scratch);
  CHECK(kept() == std::vector<token_id>{1}); // 0.52 already exceeds 0.5
  filter_candidates(logits, 1.0, 0, 1e-9, false, scratch);
  CHECK(kept() == std::vector<token_id>{1}); // the first token always stays
  filter_candidates(logits, 1.0, 0, 1.0, false, scratch);
  CHECK(kept().size() == 5);
  filter_candidates(logits, 1.0, 100, 0, false, scratch);
  CHECK(kept().size() == 5);
}

TEST_CASE("a draw follows the probabilities") {
  std::vector<float> logits{std::log(0.1F), std::log(0.6F), std::log(0.3F)};
  sampling_scratch scratch;
  random_stream chance(3, substream::text);
  chat_sampling how;
  how.temperature = 1;
  how.top_p = 1;
  how.repetition_penalty = 1;
  std::map<token_id, int> counts;
  for (auto i = 0; i < 20000; ++i) {
    auto row = logits;
    ++counts[draw_chat(row, {}, {}, {}, how, chance, scratch)];
  }
  CHECK(std::abs(counts[0] / 20000.0 - 0.1) < 0.01);
  CHECK(std::abs(counts[1] / 20000.0 - 0.6) < 0.01);
  CHECK(std::abs(counts[2] / 20000.0 - 0.3) < 0.01);
}

TEST_CASE("the raw draw may end the chunk, the second one never does") {
  std::vector<float> logits{1, 0, 0, 0, 0, 9};
  CHECK(decide(logits, greedy(), {}) == 5);
  duplex_sampling how;
  how.base.top_p = 0;
  CHECK(decide(logits, how, {0.9}) == 5);
  CHECK(decide(logits, how, {0.0, 0.999999}) != 5); // u = 0 would choose token 0 in the first draw
}

TEST_CASE("listen controls act on <|listen|>, and on <|im_end|> only as a quirk") {
  std::vector<float> logits{2, 0, 0, 1.5F, 0, 0};
  auto how = greedy();
  CHECK(decide(logits, how, {}) == 0);
  how.listen_prob_scale = 3; // ln 3 > 0.5
  CHECK(decide(logits, how, {}) == 3);
  how.listen_prob_scale = 0;
  CHECK(decide({0, 0, 0, 9, 0, 0}, how, {}) != 3);
  how.listen_prob_scale = 1;
  how.listen_top_k = 2;
  CHECK(decide(logits, how, {}) == 3);
  std::vector<token_id> history;
  list_of_draws none({});
  sampling_scratch scratch;
  auto row = logits;
  CHECK(draw_duplex(row, ids, how, {}, history, none, scratch) == 3);
  CHECK(history.empty()); // only sampled tokens are in it
  how.listen_top_k = 1;
  CHECK(decide(logits, how, {}) == 0);
  auto q = quirks::literal();
  how.listen_top_k.reset();
  how.listen_prob_scale = 1.2; // multiplies the logit: 1.8 < 2
  CHECK(decide(logits, how, {}, q) == 0);
  how.listen_prob_scale = 1.5;
  CHECK(decide(logits, how, {}, q) == 3);
}

TEST_CASE("the penalty looks at a window of the history") {
  std::vector<float> logits{2, 1.9F, 0, 0, 0, 0};
  auto how = greedy();
  how.base.repetition_penalty = 1.5;
  CHECK(decide(logits, how, {}, {}, {0}) == 1);
  CHECK(decide(logits, how, {}, {}, {0, 0, 0}) == 1); // penalised once, however often it repeats
  how.base.repetition_window = 2;
  CHECK(decide(logits, how, {}, {}, {0, 2, 2}) == 0); // outside the window
}

TEST_CASE("a row that is not numbers is refused") {
  auto nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(decide({0, nan, 0, 0, 0, 0}, greedy(), {}), std::runtime_error);
  duplex_sampling how;
  CHECK_THROWS_AS(decide({nan, nan, nan, nan, nan, nan}, how, {0.5, 0.5}), std::runtime_error);
}

TEST_CASE("scores are the logarithms of the softmax, the likeliest first") {
  const auto tokens = tokenizer::open("models/tiny-omni");
  std::vector<float> logits(static_cast<std::size_t>(tokens.size()), -std::numeric_limits<float>::infinity());
  logits[70] = 1000; // large enough that e^x overflows
  logits[71] = 1001;
  logits[72] = 1001;
  logits[300] = 998;
  const auto sum = std::exp(-1.0) + 2 + std::exp(-3.0);
  const auto of = score(logits, 70, 20, tokens);
  CHECK(of.chosen.bytes == tokens.bytes(70));
  CHECK(of.chosen.logprob == Approx(-1 - std::log(sum)));
  REQUIRE(of.likeliest.size() == 4); // the others are impossible
  CHECK(of.likeliest[0].bytes == tokens.bytes(71));
  CHECK(of.likeliest[1].bytes == tokens.bytes(72));
  CHECK(of.likeliest[3].bytes == tokens.bytes(300));
  CHECK(of.likeliest[3].logprob == Approx(-3 - std::log(sum)));
  CHECK(score(logits, 71, 0, tokens).likeliest.empty());
  CHECK(score(logits, 71, 2, tokens).likeliest.size() == 2);
  CHECK(std::isinf(score(logits, 0, 1, tokens).chosen.logprob));
}
