#include "inference/llm/shortlist.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace parley::inference;
using namespace parley::inference::testing;

TEST_CASE("a device sends what draws need of rows of logits") {
  constexpr std::int64_t rows = 5, vocabulary = 3000;
  constexpr token_id chunk_eos = 1200;
  const auto random = at::make_generator<at::CPUGeneratorImpl>(1);
  // Many are equal, as after a product in bfloat16.
  const auto logits = (at::randn({rows, vocabulary}, random, at::kFloat) * 4).to(at::kBFloat16).to(at::kFloat);
  const llm::shortlist listed(chunk_eos, {2999, 0, 7, 0}, pretend_device());
  const auto there = logits.to(pretend_device());
  take_work();
  const auto found = listed.of(there);
  const auto work = take_work();
  CHECK(work.downloads == 1);
  CHECK(work.uploads == 0);
  CHECK(work.kernels <= 10);
  REQUIRE(found.size() == rows);
  for (auto n = std::int64_t{0}; n < rows; ++n) {
    const auto& row = found[static_cast<std::size_t>(n)];
    const auto* all = logits[n].const_data_ptr<float>();
    CHECK(std::ranges::is_sorted(row.ids, std::less_equal<>{}));
    CHECK(row.ids.size() >= llm::shortlist::length);
    CHECK(row.ids.size() <= llm::shortlist::length + 4);
    for (auto id : {chunk_eos, token_id{0}, token_id{7}, token_id{2999}})
      CHECK(std::ranges::binary_search(row.ids, id));
    for (std::size_t i = 0; i < row.ids.size(); ++i) CHECK(row.logits[i] == all[row.ids[i]]);
    auto total = 0.0, before = 0.0;
    const auto top = *std::max_element(all, all + vocabulary);
    for (auto id = token_id{0}; id < vocabulary; ++id) {
      if (!std::ranges::binary_search(row.ids, id)) CHECK(all[id] <= row.others);
      if (id == chunk_eos) before = total;
      total += std::exp(double{all[id]} - top);
    }
    CHECK(row.total == Approx(total).epsilon(1e-6));
    CHECK(row.before_chunk_eos == Approx(before).epsilon(1e-6));
  }
}

TEST_CASE("a device sends rows that are shorter than a list") {
  const llm::shortlist listed(1, {2}, pretend_device());
  const auto logits = at::tensor({0.5F, 2.0F, -1.0F, 2.0F}).view({1, 4}).to(pretend_device());
  const auto row = listed.of(logits).front();
  CHECK(row.ids == std::vector<token_id>{0, 1, 2, 3});
  CHECK(row.logits == std::vector{0.5F, 2.0F, -1.0F, 2.0F});
  CHECK(std::isfinite(row.total));
  const auto nothing = at::full({1, 4}, NAN).to(pretend_device());
  CHECK_FALSE(std::isfinite(listed.of(nothing).front().total));
}
