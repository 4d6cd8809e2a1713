#include "tests/accelerator/pretend_device.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

using namespace parley::inference::testing;

namespace {

at::Tensor numbers() {
  return at::arange(32, at::kFloat).view({4, 8}).to(pretend_device());
}

/// The signal that ends a process which does this; 0 = it survives.
int signal_of(const std::function<void()>& deed) {
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL); // not the test framework's
    deed();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

} // namespace

TEST_CASE("the pretend device computes what the CPU computes") {
  const auto x = numbers();
  CHECK(x.device().str() == "pretend:0");
  CHECK((x * 2).sum().item<float>() == 992);
  const auto y = at::linear(x, x).to(at::kCPU);
  CHECK(at::equal(y, at::linear(x.to(at::kCPU), x.to(at::kCPU))));
  auto part = x.narrow(1, 2, 3);
  part.add_(100); // a view
  CHECK(x.to(at::kCPU)[1][3].item<float>() == 111);
}

TEST_CASE("a process that touches the device's memory dies") {
  const auto x = numbers();
  const auto* first = x.const_data_ptr<float>();
  CHECK(signal_of([] {}) == 0);
  CHECK(signal_of([&] { ::_exit(*first > 0 ? 1 : 2); }) == SIGSEGV);
  CHECK(signal_of([&] { *const_cast<float*>(first) = 1; }) == SIGSEGV);
}

TEST_CASE("tensors of two devices do not mix") {
  const auto x = numbers();
  CHECK_THROWS_WITH(x + at::ones({4, 8}), Catch::Contains("device"));
  CHECK_THROWS_WITH(at::linear(x, at::ones({3, 8})), Catch::Contains("is on the CPU"));
  CHECK_THROWS_WITH(at::cat({x, at::ones({1, 8})}), Catch::Contains("is on the CPU"));
  CHECK_THROWS_WITH(x.index_select(0, at::tensor({1, 2}, at::kLong)), Catch::Contains("is on the CPU"));
  const auto heads = at::ones({1, 2, 3, 4});
  CHECK_THROWS_WITH(at::scaled_dot_product_attention(heads.to(pretend_device()), heads, heads),
                    Catch::Contains("attention of two devices"));
  const auto signal = at::ones({1, 2, 9}), kernel = at::ones({2, 2, 3});
  CHECK_THROWS_WITH(at::conv1d(signal.to(pretend_device()), kernel), Catch::Contains("convolution of two devices"));
}

TEST_CASE("the device's work is counted") {
  const auto x = numbers();
  take_work();
  const auto y = x.to(at::kCPU);
  auto work = take_work();
  CHECK(work.downloads == 1);
  CHECK(work.kernels == 0);
  const auto z = y.to(pretend_device());
  CHECK(x.view({8, 4}).transpose(0, 1).sizes() == at::IntArrayRef({4, 8}));
  work = take_work();
  CHECK(work.uploads == 1);
  CHECK(work.kernels == 0); // views cost nothing
  const auto sum = at::add(x, z);
  CHECK(sum[0][0].item<float>() == 0);
  work = take_work();
  CHECK(work.kernels == 1);
  CHECK(work.by_kernel == std::map<std::string, long>{{"aten::add", 1}});
  CHECK(work.downloads == 1);
}

TEST_CASE("a broken device fails every call") {
  const auto x = numbers();
  break_device();
  CHECK_THROWS_WITH(x + x, Catch::Contains("has failed"));
  CHECK_THROWS_WITH(x.to(at::kCPU), Catch::Contains("has failed"));
  mend_device();
  CHECK((x - x).sum().item<float>() == 0);
}
