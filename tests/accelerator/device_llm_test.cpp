#include "inference/thinker.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

#include <vector>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

const thinker& model_on(at::Device device) {
  constexpr const char* folder = "models/tiny-omni";
  static const auto weights = checkpoint::open(folder);
  static const thinker cpu(weights, model_config::open(folder), at::kFloat, at::kCPU);
  static const thinker pretend(weights, model_config::open(folder), at::kFloat, pretend_device());
  return device.is_cpu() ? cpu : pretend;
}

/// Plays conversations on one device and keeps the logits of every row.
class player {
public:
  player(at::Device device, int homes, int tokens)
      : model_(model_on(device).llm()), pool_(model_.config(), homes, tokens, at::kFloat, device) {}

  struct part {
    std::size_t cache;
    std::int64_t rows;
  };

  void feed(const std::vector<part>& parts) {
    std::vector<token_id> ids;
    std::vector<llm::sequence_rows> sequences;
    std::vector<std::int64_t> all;
    for (const auto& p : parts) {
      sequences.push_back({&caches[p.cache], p.rows});
      for (auto i = std::int64_t{0}; i < p.rows; ++i) {
        all.push_back(std::ssize(ids));
        ids.push_back(static_cast<token_id>(static_cast<std::int64_t>(p.cache) * 31 + caches[p.cache].length() + i) %
                      900);
      }
    }
    logits.push_back(model_.logits(model_.forward({ids, {}}, sequences, all)).cpu());
  }

  void open() { caches.push_back(pool_.open()); }
  void fork(std::size_t from) { caches.push_back(caches[from].fork()); }

  void drop(std::size_t cache, std::int64_t begin, std::int64_t count) {
    caches[cache].drop(begin, count, model_.positions());
  }

  std::vector<llm::kv_cache> caches;
  std::vector<at::Tensor> logits;

private:
  const llm::qwen3& model_;
  llm::kv_pool pool_;
};

template<class Play>
void check_same(int homes, int tokens, Play play) {
  const c10::InferenceMode guard;
  player here(at::kCPU, homes, tokens), there(pretend_device(), homes, tokens);
  play(here);
  play(there);
  REQUIRE(here.logits.size() == there.logits.size());
  for (std::size_t i = 0; i < here.logits.size(); ++i) {
    INFO("call " << i);
    CHECK((here.logits[i] - there.logits[i]).abs().max().item<float>() < 2e-4F);
  }
}

} // namespace

TEST_CASE("sequences with a common beginning have the CPU's logits on a device") {
  check_same(8, 512, [](player& p) {
    p.open();
    p.feed({{0, 150}});
    for (auto i = 0; i < 4; ++i) p.fork(0);
    p.open();
    p.feed({{5, 40}, {1, 1}, {2, 13}, {3, 1}, {4, 1}, {0, 2}}); // with one of its own between them
    CHECK(p.caches[2].runs().size() == 2);
    p.feed({{1, 1}, {2, 1}, {3, 1}, {4, 1}}); // all of them share it
    p.feed({{3, 70}, {0, 1}, {5, 1}, {1, 90}});
  });
}

TEST_CASE("sequences in many runs of pages have the CPU's logits on a device") {
  check_same(1, 20 * llm::kv_pool::page_tokens, [](player& p) {
    p.open();
    p.open();
    p.open();
    for (auto i = 0; i < 5; ++i) p.feed({{0, 50}, {1, 60}, {2, 64}}); // new rows in two runs
    p.feed({{0, 134}, {1, 1}});                                       // to the end of a page
    p.fork(0);
    p.feed({{3, 1}, {2, 1}}); // takes the page behind it
    p.feed({{2, 1}, {0, 10}, {3, 20}});
    CHECK(p.caches[0].runs().size() == 3);
    CHECK(p.caches[3].runs().size() == 2);
    p.feed({{2, 1}, {0, 1}, {3, 1}, {1, 1}});
  });
}

TEST_CASE("a window that slides has the CPU's logits on a device") {
  check_same(2, 512, [](player& p) {
    p.open();
    p.feed({{0, 140}});
    p.fork(0);
    p.drop(1, 30, 50);
    p.feed({{0, 20}, {1, 70}});
  });
}
