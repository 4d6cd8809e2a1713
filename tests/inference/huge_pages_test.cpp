#include "inference/kernels/huge_pages.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <cstdint>
#include <vector>

using namespace parley::inference;

TEST_CASE("a large matrix moves to huge pages with its numbers, its shape and its dtype") {
  at::manual_seed(3);
  for (auto dtype : {at::kFloat, at::kBFloat16, at::kChar, at::kByte}) {
    const auto matrix = at::randint(0, 100, {1024, 1030}, dtype);
    const auto moved = cpu::in_huge_pages(matrix);
    CHECK(moved.const_data_ptr() != matrix.const_data_ptr());
    CHECK(moved.is_contiguous());
    CHECK(moved.scalar_type() == dtype);
    CHECK(at::equal(moved, matrix));
  }
}

TEST_CASE("matrices in huge pages do not overlap, whatever their size, and outlive each other") {
  std::vector<at::Tensor> moved;
  const std::vector<std::int64_t> rows{300, 20000, 301, 1, 40000, 299}; // 4 KiB each; the fifth is larger than a slab
  for (std::size_t i = 0; i < rows.size(); ++i)
    moved.push_back(cpu::in_huge_pages(at::full({rows[i], 1024}, static_cast<double>(i), at::kFloat)));
  moved.erase(moved.begin());
  moved.push_back(cpu::in_huge_pages(at::full({5000, 1024}, 6.0, at::kFloat)));
  for (std::size_t i = 0; i < moved.size(); ++i) {
    CHECK(moved[i].min().item<float>() == static_cast<float>(i + 1));
    CHECK(moved[i].max().item<float>() == static_cast<float>(i + 1));
    CHECK(reinterpret_cast<std::uintptr_t>(moved[i].const_data_ptr()) % 64 == 0);
  }
}

TEST_CASE("what is small or not contiguous stays where it is") {
  const auto small = at::ones({16, 1024}), turned = at::ones({1024, 1024}).t();
  CHECK(cpu::in_huge_pages(small).is_same(small));
  CHECK(cpu::in_huge_pages(turned).is_same(turned));
}
