#include "inference/kernels/parallel.hpp"

#include "inference/llm/linear.hpp"
#include "inference/llm/quantized.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <catch2/catch.hpp>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace parley::inference;

namespace {

/// The other tests use one thread.
class with_threads {
public:
  explicit with_threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~with_threads() { at::set_num_threads(before_); }
  with_threads(const with_threads&) = delete;
  with_threads& operator=(const with_threads&) = delete;

private:
  const int before_;
};

#ifdef __SANITIZE_THREAD__
constexpr bool serial = true;
#else
constexpr bool serial = false;
#endif

} // namespace

TEST_CASE("the parts of a parallel loop cover it once, on several threads") {
  const with_threads four(4);
  for (const std::int64_t length : {0, 1, 3, 4, 17, 1000})
    for (const std::int64_t grain : {0, 1, 5, 400}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(length));
      std::mutex mutex;
      std::set<std::thread::id> seen;
      std::size_t parts = 0;
      cpu::parallel_for(0, length, grain, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
        ++parts;
      });
      for (const auto& count : visits) REQUIRE(count == 1);
      INFO(length << " by " << grain);
      CHECK(seen.size() == parts);
      if (length >= 17 && grain <= 1 && !serial) CHECK(parts == 4);
      if (length <= grain) CHECK(parts == (length > 0 ? 1U : 0U));
    }
}

TEST_CASE("an exception of a part comes out, and the loop can be used again") {
  const with_threads four(4);
  const auto fails = [](std::int64_t, std::int64_t end) {
    if (end == 100) throw std::runtime_error("the last part");
  };
  for (auto i = 0; i < 3; ++i) CHECK_THROWS_WITH(cpu::parallel_for(0, 100, 1, fails), "the last part");
}

TEST_CASE("a loop within a loop is one part") {
  const with_threads four(4);
  std::atomic<int> parts{0};
  cpu::parallel_for(0, 4, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) cpu::parallel_for(0, 100, 1, [&](std::int64_t, std::int64_t) { ++parts; });
  });
  if (!serial) CHECK(parts == 4);
}

TEST_CASE("products are the same numbers with one thread and with several") {
  at::manual_seed(3);
  const auto matrix = at::randn({1040, 512});
  for (const std::int64_t rows : {1, 3, 9, 16}) {
    const auto x = at::randn({rows, 512});
    for (const auto format : {llm::quantization::int8, llm::quantization::int4}) {
      const llm::quantized_matrix small(matrix, format);
      const auto alone = small.product(x);
      const with_threads four(4);
      CHECK(at::equal(small.product(x), alone));
    }
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const llm::linear wide(matrix.to(dtype));
      const auto alone = wide(x.to(dtype));
      const with_threads four(4);
      CHECK(at::equal(wide(x.to(dtype)), alone));
    }
  }
}
