#include "inference/kernels/device_graph.hpp"

#include "tests/accelerator/pretend_device.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <stdexcept>
#include <vector>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

/// Picks rows of a table by number and adds an input.
struct picking {
  graph_cache graphs{2};
  at::Tensor table = at::arange(10, at::kFloat).to(pretend_device());

  at::Tensor operator()(std::vector<std::int64_t> rows, float more) {
    packed_upload numbers;
    const auto part = numbers.add(rows);
    const std::vector<at::Tensor> inputs{at::full({std::ssize(rows)}, more).to(pretend_device())};
    const auto work = [this, part](const packed_upload& sent, std::span<const at::Tensor> given) {
      return table.index_select(0, sent[part]) + given.front();
    };
    return graphs.run({std::ssize(rows)}, std::move(numbers), inputs, pretend_device(), work).to(at::kCPU);
  }
};

bool same(const at::Tensor& found, std::vector<float> expected) {
  return at::equal(found, at::tensor(expected));
}

} // namespace

TEST_CASE("calls of one shape share memory and have results of their own") {
  picking pick;
  CHECK(same(pick({1, 2}, 0.5F), {1.5F, 2.5F}));
  CHECK(same(pick({7, 3}, 1), {8, 4}));
  CHECK(same(pick({9}, 0), {9}));
  CHECK(same(pick({0, 1}, 2), {2, 3}));
  CHECK(pick.graphs.size() == 2);
  graph_cache::prefer_calls(true);
  CHECK(same(pick({4, 4}, 1), {5, 5}));
  graph_cache::prefer_calls(false);
}

TEST_CASE("the shape that was called longest ago makes room for a new one") {
  picking pick;
  pick({1}, 0);
  pick({1, 2}, 0);
  pick({1}, 0);
  CHECK(same(pick({1, 2, 3}, 0), {1, 2, 3}));
  CHECK(pick.graphs.size() == 2);
  CHECK(same(pick({5}, 0), {5}));
  CHECK(same(pick({5, 6}, 0), {5, 6}));
}

TEST_CASE("a call that throws leaves nothing behind") {
  picking pick;
  CHECK_THROWS(pick({11}, 0)); // no such row
  CHECK(pick.graphs.size() == 0);
  CHECK(same(pick({6}, 0), {6}));
  CHECK_THROWS(pick({11}, 0));
  CHECK(same(pick({7}, 0), {7}));
}

TEST_CASE("numbers of another layout are refused") {
  packed_upload sent, longer;
  sent.add(std::vector<std::int64_t>{1});
  longer.add(std::vector<std::int64_t>{1, 2, 3});
  CHECK_THROWS_AS(sent.send_again(sent), std::invalid_argument); // nothing was sent
  sent.send(pretend_device());
  CHECK_THROWS_AS(sent.send_again(longer), std::invalid_argument);
}

TEST_CASE("counts are padded to few") {
  for (const auto& [count, padded] :
       {std::pair{1, 1}, {3, 4}, {8, 8}, {9, 16}, {33, 48}, {64, 64}, {65, 80}, {97, 112}})
    CHECK(padded_count(count) == padded);
}
