#include "inference/llm/sampling.hpp"
#include "inference/thinker.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <iostream>
#include <limits>
#include <numeric>
#include <random>

using namespace parley::inference;

namespace {

constexpr double same_logits = 1e-5; // float32 rounding (a session's results do not depend on the others in its batch)

const thinker& model() {
  static const thinker m(checkpoint::open("models/tiny-omni"), model_config::open("models/tiny-omni"), at::kFloat,
                         at::kCPU);
  return m;
}

std::vector<token_id> some_ids(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<token_id> ids(static_cast<std::size_t>(count));
  for (auto& id : ids) id = static_cast<token_id>(random() % 1700);
  return ids;
}

struct run {
  at::Tensor prefill; ///< logits of all rows
  at::Tensor decode;  ///< logits of a few steps
};

std::vector<std::int64_t> all_rows(std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Prefills these sequences in one call, then decodes `steps` greedy tokens for all of them, one call per token.
std::vector<run> together(const std::vector<std::vector<token_id>>& prompts, const llm::kv_pool& pool, int steps = 8) {
  const auto& llm = model().llm();
  std::vector<llm::kv_cache> caches;
  std::vector<token_id> ids;
  for (const auto& p : prompts) {
    caches.push_back(pool.open());
    ids.insert(ids.end(), p.begin(), p.end());
  }
  std::vector<llm::sequence_rows> sequences;
  for (auto i = std::size_t{0}; i < prompts.size(); ++i) sequences.push_back({&caches[i], std::ssize(prompts[i])});
  auto logits = llm.logits(llm.forward(llm.embed(ids), sequences, all_rows(std::ssize(ids))));
  std::vector<run> runs;
  std::vector<std::vector<at::Tensor>> decoded(prompts.size());
  std::vector<token_id> next;
  auto first = std::int64_t{0};
  for (const auto& p : prompts) {
    runs.push_back({logits.narrow(0, first, std::ssize(p)), {}});
    first += std::ssize(p);
    next.push_back(logits[first - 1].argmax().item<std::int64_t>());
  }
  for (auto& s : sequences) s.rows = 1;
  for (auto step = 0; step < steps; ++step) {
    auto rows = llm.logits(llm.forward(llm.embed(next), sequences, all_rows(std::ssize(next))));
    for (auto i = std::size_t{0}; i < next.size(); ++i) {
      decoded[i].push_back(rows[static_cast<std::int64_t>(i)]);
      next[i] = decoded[i].back().argmax().item<std::int64_t>();
    }
  }
  for (auto i = std::size_t{0}; i < runs.size(); ++i) runs[i].decode = at::stack(decoded[i]);
  return runs;
}

struct comparison {
  double difference = 0;
  double error = 0; ///< with the error rule of the goldens: relative to the largest logit
  double least_margin = std::numeric_limits<double>::infinity();
  bool same_tokens = true;

  void add(const at::Tensor& a, const at::Tensor& b) {
    auto apart = (a - b).abs().max().item<double>();
    difference = std::max(difference, apart);
    error = std::max(error, apart / std::max(1.0, b.abs().max().item<double>()));
    auto top = std::get<0>(a.topk(2, -1));
    least_margin = std::min(least_margin, (top.select(-1, 0) - top.select(-1, 1)).min().item<double>());
    same_tokens &= at::equal(a.argmax(-1), b.argmax(-1));
  }

  void report(const char* what) const {
    std::cout << "independence: " << what << ": max difference of logits " << difference << ", relative " << error
              << ", least decision margin " << least_margin << '\n';
    CHECK(error <= same_logits);
    CHECK((same_tokens || least_margin <= difference));
  }
};

std::vector<std::vector<token_id>> some_prompts() {
  std::vector<std::vector<token_id>> prompts;
  for (auto i = 0; i < 7; ++i) prompts.push_back(some_ids(3 + 29 * i % 83 + i * 11, static_cast<unsigned>(i)));
  return prompts;
}

} // namespace

TEST_CASE("the language model: alone and in shuffled batches") {
  llm::kv_pool pool(model().config().llm, 16, 512, at::kFloat, at::kCPU);
  auto prompts = some_prompts();
  std::vector<run> alone;
  for (const auto& p : prompts) alone.push_back(together({p}, pool).front());
  comparison prefill, decode;
  for (auto seed = 0U; seed < 4; ++seed) {
    auto order = all_rows(std::ssize(prompts));
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    std::vector<std::vector<token_id>> shuffled;
    for (auto i : order) shuffled.push_back(prompts[static_cast<std::size_t>(i)]);
    auto runs = together(shuffled, pool);
    for (auto i = std::size_t{0}; i < runs.size(); ++i) {
      prefill.add(alone[static_cast<std::size_t>(order[i])].prefill, runs[i].prefill);
      decode.add(alone[static_cast<std::size_t>(order[i])].decode, runs[i].decode);
    }
  }
  prefill.report("prefill, shuffled batches of 7");
  decode.report("decode, shuffled batches of 7");
  CHECK(pool.free_pages() == pool.pages());
}

TEST_CASE("the language model: a prefill cut anywhere") {
  llm::kv_pool pool(model().config().llm, 4, 512, at::kFloat, at::kCPU);
  const auto& llm = model().llm();
  auto ids = some_ids(150, 5);
  auto whole = together({ids}, pool, 1).front();
  for (auto piece : {1, 2, 7, 64, 100}) {
    auto cache = pool.open();
    comparison cut;
    for (auto first = 0; first < std::ssize(ids); first += piece) {
      auto part = std::span(ids).subspan(
          static_cast<std::size_t>(first),
          std::min<std::size_t>(static_cast<std::size_t>(piece), ids.size() - static_cast<std::size_t>(first)));
      llm::sequence_rows rows{&cache, std::ssize(part)};
      auto logits = llm.logits(llm.forward(llm.embed(part), {&rows, 1}, all_rows(std::ssize(part))));
      cut.add(whole.prefill.narrow(0, first, std::ssize(part)), logits);
    }
    cut.report(("prefill of 150 cut into pieces of " + std::to_string(piece)).c_str());
  }
}

TEST_CASE("the language model: pages that do not lie in one run") {
  llm::kv_pool pool(model().config().llm, 2, 128, at::kFloat, at::kCPU); // two homes with two pages each
  auto a = pool.open(), b = pool.open();
  a.reserve(1);
  b.reserve(1);
  a.reserve(130); // takes a page from the other home
  b.reserve(1);
  auto ids = some_ids(130, 9);
  const auto& llm = model().llm();
  llm::sequence_rows rows{&a, 130};
  auto scattered = llm.logits(llm.forward(llm.embed(ids), {&rows, 1}, all_rows(130)));
  auto one = std::int64_t{0};
  llm::sequence_rows next{&a, 1};
  auto more = llm.logits(llm.forward(llm.embed(std::span(ids).first(1)), {&next, 1}, {&one, 1}));
  CHECK_THROWS_AS(a.reserve(64), std::runtime_error);
  CHECK(a.length() == 131);

  llm::kv_pool roomy(model().config().llm, 1, 512, at::kFloat, at::kCPU);
  auto c = roomy.open();
  llm::sequence_rows same{&c, 130}, same_next{&c, 1};
  comparison layout;
  layout.add(llm.logits(llm.forward(llm.embed(ids), {&same, 1}, all_rows(130))), scattered);
  layout.add(llm.logits(llm.forward(llm.embed(std::span(ids).first(1)), {&same_next, 1}, {&one, 1})), more);
  layout.report("scattered pages");
}

TEST_CASE("rows that are dropped and put back leave the keys where they belong") {
  llm::kv_pool pool(model().config().llm, 4, 512, at::kFloat, at::kCPU);
  const auto& llm = model().llm();
  auto ids = some_ids(120, 11);
  auto feed = [&](llm::kv_cache& cache, std::span<const token_id> part) {
    llm::sequence_rows rows{&cache, std::ssize(part)};
    llm.forward(llm.embed(part), {&rows, 1}, {});
  };
  auto whole = pool.open(), moved = pool.open();
  feed(whole, ids);
  feed(moved, ids);
  auto tail = moved.copy_from(50);
  moved.truncate(50);
  CHECK(moved.pages() == 1);
  moved.append(tail, llm.positions());
  CHECK(moved.length() == 120);
  CHECK(at::allclose(moved.keys(0), whole.keys(0), 0, 1e-6));
  // There and back: moving far rotates the keys, moving back undoes it.
  moved.drop(10, 30, llm.positions());
  CHECK(moved.length() == 90);
  auto back = moved.copy_from(10);
  moved.truncate(10);
  feed(moved, std::span(ids).subspan(10, 30));
  moved.append(back, llm.positions());
  CHECK(at::allclose(moved.keys(0), whole.keys(0), 0, 1e-4));
  CHECK(at::allclose(moved.values(0), whole.values(0), 0, 0));
}

TEST_CASE("the language model: a beginning that many share") {
  const auto& llm = model().llm();
  auto feed = [&](std::vector<llm::kv_cache*> caches, const std::vector<std::vector<token_id>>& ids) {
    std::vector<llm::sequence_rows> sequences;
    std::vector<token_id> all;
    for (auto i = std::size_t{0}; i < caches.size(); ++i) {
      sequences.push_back({caches[i], std::ssize(ids[i])});
      all.insert(all.end(), ids[i].begin(), ids[i].end());
    }
    return llm.logits(llm.forward(llm.embed(all), sequences, all_rows(std::ssize(all))));
  };
  const auto beginning = some_ids(150, 21), other_beginning = some_ids(100, 22);
  constexpr auto sharers = std::size_t{6};
  std::vector<std::vector<std::vector<token_id>>> steps; // units, single tokens, and one step that needs a new page
  for (auto step = 0U; step < 5; ++step) {
    steps.emplace_back();
    for (auto i = 0U; i <= sharers; ++i)
      steps.back().push_back(some_ids(step == 3 ? 90 : i % 3 == 0 ? 1 : 13, 100 * step + i));
  }
  // The expected logits: each sequence alone, from its first row.
  std::vector<std::vector<at::Tensor>> alone(sharers + 1);
  for (auto i = std::size_t{0}; i <= sharers; ++i) {
    llm::kv_pool pool(llm.config(), 1, 512, at::kFloat, at::kCPU);
    auto cache = pool.open();
    feed({&cache}, {i == sharers ? other_beginning : beginning});
    for (const auto& step : steps) alone[i].push_back(feed({&cache}, {step[i]}));
  }
  llm::kv_pool pool(llm.config(), 8, 512, at::kFloat, at::kCPU);
  auto maker = pool.open();
  feed({&maker}, {beginning});
  auto kept = maker.keep();
  CHECK(pool.pages() - pool.free_pages() == 4); // two full pages, and for both owners a third page
  std::vector<llm::kv_cache> caches;
  caches.push_back(std::move(maker));
  while (caches.size() < sharers) caches.push_back(kept.fork());
  caches.push_back(pool.open());
  feed({&caches.back()}, {other_beginning});
  CHECK(pool.pages() - pool.free_pages() == 4 + 2);
  std::vector<llm::kv_cache*> all;
  for (auto& c : caches) all.push_back(&c);
  comparison apart;
  for (auto step = std::size_t{0}; step < steps.size(); ++step) {
    auto logits = feed(all, steps[step]);
    auto first = std::int64_t{0};
    for (auto i = std::size_t{0}; i <= sharers; ++i) {
      const auto rows = std::ssize(steps[step][i]);
      apart.add(alone[i][step], logits.narrow(0, first, rows));
      first += rows;
    }
  }
  apart.report("six that share their first 150 rows, and one that does not");
  CHECK(caches.front().runs().size() == 1); // the first one stays in the pages that it filled
  CHECK(caches[1].runs().size() == 2);
  CHECK(caches[1].runs().front().rows == 128);
  CHECK(caches[1].runs().front().first == caches[2].runs().front().first);
  // Whatever one session drops, takes back or moves does not affect the others.
  const auto before = caches[2].keys(1).clone();
  caches[1].drop(40, 70, llm.positions());
  caches[0].truncate(10);
  feed({&caches[0]}, {some_ids(80, 77)});
  CHECK(at::equal(caches[2].keys(1), before));
  CHECK(at::equal(kept.keys(1), before.narrow(0, 0, 150)));
  all.clear();
  caches.clear();
  CHECK(pool.pages() - pool.free_pages() == 3);
}

TEST_CASE("caches that are only kept make room for those in use") {
  llm::kv_pool pool(model().config().llm, 2, 128, at::kFloat, at::kCPU);
  const auto& llm = model().llm();
  auto a = pool.open();
  const auto ids = some_ids(100, 3);
  llm::sequence_rows rows{&a, 100};
  llm.forward(llm.embed(ids), {&rows, 1}, {});
  std::vector<llm::kv_cache> kept;
  kept.push_back(a.keep());
  CHECK(pool.free_pages() == 1);
  pool.when_full([&] {
    if (kept.empty()) return false;
    kept.pop_back();
    return true;
  });
  const auto keys = a.keys(2).clone();
  a.reserve(150);
  CHECK(kept.empty());
  CHECK(pool.free_pages() == 0);
  CHECK(at::equal(a.keys(2), keys));
  CHECK_THROWS_AS(a.reserve(200), std::runtime_error);
}

TEST_CASE("a failed call leaves the caches as they were") {
  llm::kv_pool pool(model().config().llm, 2, 64, at::kFloat, at::kCPU);
  const auto& llm = model().llm();
  auto a = pool.open(), b = pool.open();
  auto ids = some_ids(80, 3);
  llm::sequence_rows first{&a, 10};
  llm.forward(llm.embed(std::span(ids).first(10)), {&first, 1}, {});
  auto keys = a.keys(0).clone();
  std::vector<llm::sequence_rows> both{{&a, 20}, {&b, 60}};
  auto one_more = pool.open();
  CHECK_THROWS_AS((one_more.reserve(64), one_more.reserve(128), llm.forward(llm.embed(ids), both, {})),
                  std::runtime_error);
  CHECK(a.length() == 10);
  CHECK(b.length() == 0);
  CHECK(at::equal(a.keys(0), keys));
}

TEST_CASE("hearing: streams alone and together") {
  constexpr auto streams = 5;
  std::vector<std::vector<float>> sounds;
  for (auto i = 0; i < streams; ++i) {
    std::mt19937 random(static_cast<unsigned>(i));
    std::vector<float> sound(16480 + 2 * 16000);
    for (auto& x : sound) x = static_cast<float>(random() % 2000) / 10000.0F - 0.1F;
    sounds.push_back(std::move(sound));
  }
  auto hear = [&](std::vector<int> who) {
    std::vector<audio::mel_stream> states(who.size());
    std::vector<audio::encoder_cache> caches;
    for (auto i = std::size_t{0}; i < who.size(); ++i) caches.push_back(model().make_encoder_cache());
    std::vector<std::vector<at::Tensor>> rows(who.size());
    auto first = std::size_t{0};
    for (auto unit = 0; unit < 3; ++unit) {
      auto need = static_cast<std::size_t>(states.front().next_need());
      std::vector<thinker::fresh_sound> fresh;
      for (auto i = std::size_t{0}; i < who.size(); ++i)
        fresh.push_back({&states[i], &caches[i],
                         std::span(sounds[static_cast<std::size_t>(who[i])]).subspan(first, need), unit == 0 ? 0 : 1});
      auto heard = model().hear(fresh);
      for (auto i = std::size_t{0}; i < who.size(); ++i) rows[i].push_back(heard[i]);
      first += need;
    }
    std::vector<at::Tensor> result;
    for (auto& r : rows) result.push_back(at::cat(r));
    return result;
  };
  auto all = hear({3, 0, 4, 1, 2});
  auto difference = 0.0;
  auto place = 0;
  for (auto who : {3, 0, 4, 1, 2})
    difference =
        std::max(difference, (hear({who}).front() - all[static_cast<std::size_t>(place++)]).abs().max().item<double>());
  std::cout << "independence: hearing, 5 streams together: max difference of rows " << difference << '\n';
  CHECK(difference <= same_logits);
}
