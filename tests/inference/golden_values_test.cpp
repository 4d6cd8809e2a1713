#include "inference/verify/golden_values.hpp"

#include "inference/verify/report.hpp"
#include "tests/inference/made_folder.hpp"
#include "tests/support/temporary_folder.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <map>

using namespace parley::inference;
using namespace parley::inference::verify;

namespace {

safetensors_file file_of(const parley::tests::temporary_folder& folder,
                         const std::map<std::string, at::Tensor>& tensors) {
  return safetensors_file::open(folder.write("x.safetensors", testing::safetensors_of(tensors)));
}

} // namespace

TEST_CASE("an output is recorded whole, or every n-th value of it") {
  parley::tests::temporary_folder folder;
  const auto whole = at::arange(70, at::kFloat).view({7, 10});
  const auto file = file_of(folder, {{"whole", whole},
                                     {"some.every11of70", whole.flatten().slice(0, 0, std::nullopt, 11).contiguous()},
                                     {"some.other", at::ones({2})}});
  CHECK(find_golden(file, "whole")->every == 1);
  CHECK(find_golden(file, "whole")->count == 70);
  CHECK(find_golden(file, "some")->every == 11);
  CHECK(find_golden(file, "some")->count == 70);
  CHECK_FALSE(has_golden(file, "som"));
  CHECK_FALSE(has_golden(file, "nothing"));
  CHECK_THROWS_WITH(golden_of(file, "nothing"), Catch::Contains("x.safetensors: no tensor nothing"));

  for (const auto* name : {"whole", "some"}) {
    INFO(name);
    const auto golden = golden_of(file, name);
    CHECK(golden_error(whole, golden) == 0);
    CHECK(std::isinf(golden_error(whole.narrow(0, 0, 6), golden)));
    CHECK(std::isinf(golden_error(at::zeros({7, 11}), golden)));
    CHECK(std::isinf(golden_error({}, golden)));
    auto other = whole.clone();
    other[2][2] += 7; // value 22, the third one kept
    CHECK(golden_error(other, golden) > 0.1);
    case_check check(1e-4);
    check.close("other", other, golden);
    CHECK(check.first_miss() == "other");
  }
}

TEST_CASE("a name that does not tell what is stored is refused") {
  for (const auto* name : {"x.every11", "x.every11of", "x.every0of70", "x.every1of7", "x.every11of78", "x.every11of70b",
                           "x.every-11of70", "x.everyof"}) {
    INFO(name);
    parley::tests::temporary_folder folder;
    const auto file = file_of(folder, {{name, at::ones({7})}});
    CHECK_THROWS_WITH(find_golden(file, "x"), Catch::Contains(name) && Catch::Contains("what its name says"));
  }
}
