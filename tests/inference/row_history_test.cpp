#include "inference/vocoder/row_history.hpp"

#include "inference/random.hpp"
#include "inference/vocoder/kv_history.hpp"
#include "inference/vocoder/row_contexts.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

// What streams share on an accelerator, here on the CPU.
using namespace parley::inference;
using namespace parley::inference::speech;

namespace {

constexpr std::int64_t spare = 6;

row_pool make_pool() {
  return {std::vector<std::int64_t>{2, 3}, 2, at::TensorOptions(at::kDouble), spare};
}

/// Fills what nobody owns with numbers that must not be read.
void spoil_free_rows(const row_pool& pool) {
  std::vector<std::shared_ptr<const row_pool::region>> taken;
  while (pool.free_rows() > 0) {
    taken.push_back(pool.take(1));
    for (std::size_t n = 0; n < pool.parts(); ++n)
      pool.part(n).narrow(1, taken.back()->first(), 1).fill_(std::numeric_limits<double>::quiet_NaN());
  }
}

/// A history, and the same as one tensor for each row of the pool's first tensor.
struct stream {
  row_history rows;
  std::vector<double> content;

  /// Its rows as the tensors hold them.
  std::vector<double> read() const {
    std::vector<double> found;
    if (rows.rows() == 0) return found;
    const auto pool = rows.region()->pool();
    for (const auto row : rows.where()) {
      const auto at_row = pool.part(1).select(1, row); // [3, 2]
      CHECK(at_row.eq(at_row[0][0]).all().item<bool>());
      CHECK(pool.part(0).select(1, row).eq(at_row[0][0]).all().item<bool>());
      found.push_back(at_row[0][0].item<double>());
    }
    return found;
  }
};

/// Writes rows with numbers of their own, in one call.
void write(const row_pool& pool, const std::vector<stream*>& streams, const std::vector<std::int64_t>& fresh,
           row_writes::how how) {
  static double next = 1;
  std::vector<row_history*> histories;
  for (auto* each : streams) histories.push_back(&each->rows);
  packed_upload numbers;
  row_writes writes(pool, histories, fresh, how);
  writes.move();
  writes.add_to(numbers);
  numbers.send(at::kCPU);
  writes.use(numbers);
  std::vector<double> values;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    auto& content = streams[i]->content;
    auto place = how.fresh == row_writes::side::front ? std::size_t{0} : content.size();
    for (std::int64_t n = 0; n < fresh[i]; ++n) {
      values.push_back(next);
      content.insert(content.begin() + static_cast<std::ptrdiff_t>(place++), next++);
    }
  }
  const auto rows = at::tensor(values, at::kDouble).view({1, -1, 1});
  for (std::size_t n = 0; n < pool.parts(); ++n) {
    const auto& part = pool.part(n);
    part.index_copy_(1, writes.targets(), rows.expand({part.size(0), -1, 2}));
  }
}

void keep_ends(stream& of, std::int64_t front, std::int64_t back) {
  of.rows.keep_ends(front, back);
  of.content.erase(of.content.begin() + front, of.content.end() - back);
}

bool is_dense(const row_history& rows) {
  auto where = rows.where();
  std::ranges::sort(where);
  for (std::int64_t n = 0; n < std::ssize(where); ++n)
    if (where[static_cast<std::size_t>(n)] != rows.begin() + n) return false;
  return true;
}

} // namespace

TEST_CASE("a pool's rows are owned once, joined again when they are free, and survive its growth") {
  const auto pool = make_pool();
  CHECK(pool.row_bytes() == (2 + 3) * 2 * sizeof(double));
  auto a = pool.take(3), b = pool.take(4), c = pool.take(2);
  pool.part(1).narrow(1, b->first(), 4).fill_(7);
  a.reset();
  const auto d = pool.take(2);
  CHECK(d->first() == 0);
  c.reset();
  const auto before = pool.rows();
  CHECK(pool.free_rows() == before - 6);
  const auto e = pool.take(50);
  CHECK(pool.part(1).narrow(1, b->first(), 4).eq(7).all().item<bool>());
  CHECK((e->first() >= b->first() + 4 || e->first() + 50 <= b->first()));
  b.reset();
  pool.reserve(500);
  const auto grown = pool.rows();
  for (auto n = 0; n < 100; ++n) CHECK(pool.take(5)->count() == 5);
  CHECK(pool.rows() == grown);
}

TEST_CASE("rows shared by many streams are what each would have alone, whatever happens to the others") {
  for (const auto how : {row_writes::how{row_writes::layout::dense, row_writes::side::front},
                         row_writes::how{row_writes::layout::scattered, row_writes::side::back}}) {
    random_stream chance(3, substream::text);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(chance.next() * static_cast<double>(n));
    };
    const auto pool = make_pool();
    stream voice;
    {
      const row_pool own(std::vector<std::int64_t>{2, 3}, 2, at::TensorOptions(at::kDouble), 0);
      write(own, {&voice}, {9}, how);
      CHECK(own.rows() == 9);
    }
    std::vector<std::unique_ptr<stream>> streams;
    std::vector<stream> copies;
    for (auto step = 0; step < 400; ++step) {
      if (streams.size() < 5) streams.push_back(std::make_unique<stream>(below(3) == 0 ? stream() : voice));
      std::vector<stream*> speak;
      std::vector<std::int64_t> fresh;
      for (const auto& each : streams)
        if (below(3) > 0) {
          speak.push_back(each.get());
          fresh.push_back(1 + below(below(8) == 0 ? 12 : 5));
        }
      if (below(4) == 0) copies.push_back(*streams[static_cast<std::size_t>(below(std::ssize(streams)))]);
      write(pool, speak, fresh, how);
      if (how.rows == row_writes::layout::dense)
        for (const auto* each : speak) REQUIRE(is_dense(each->rows));
      for (auto* each : speak)
        if (each->rows.rows() > 14) keep_ends(*each, 9, 5);
      if (below(5) == 0 && !copies.empty()) { // gone back to, or continued beside the stream
        *streams[static_cast<std::size_t>(below(std::ssize(streams)))] = copies.back();
        if (below(2) == 0) copies.pop_back();
      }
      if (below(6) == 0) copies.clear();
      if (below(6) == 0) streams.erase(streams.begin() + below(std::ssize(streams)));
      spoil_free_rows(pool);
      for (const auto& each : streams) REQUIRE(each->read() == each->content);
      for (const auto& each : copies) REQUIRE(each.read() == each.content);
    }
    CHECK(voice.content.size() == 9);
    streams.clear();
    copies.clear();
    CHECK(pool.free_rows() == pool.rows());
    CHECK(pool.rows() < 400);
  }
}

TEST_CASE("a convolution looks back to what it last had of each stream, at first to zeros") {
  const row_contexts contexts(2, 3, 1, at::TensorOptions(at::kDouble));
  const auto exchange = [&](std::vector<row_contexts::state*> of, std::vector<double> fresh) {
    packed_upload numbers;
    row_contexts::exchange call(contexts, of);
    call.move();
    call.add_to(numbers);
    numbers.send(at::kCPU);
    call.use(numbers);
    const auto read = contexts.tensor().index_select(1, call.sources()).select(2, 0); // [2, streams * 3]
    CHECK(at::equal(read[0], read[1]));
    const auto rows = at::tensor(fresh, at::kDouble).repeat_interleave(3).view({1, -1, 1}).expand({2, -1, 1});
    contexts.tensor().index_copy_(1, call.targets(), rows);
    std::vector<double> found;
    for (const auto& each : read[0].view({-1, 3}).unbind(0)) {
      CHECK(each.eq(each[0]).all().item<bool>());
      found.push_back(each[0].item<double>());
    }
    return found;
  };
  using values = std::vector<double>;
  row_contexts::state a, b;
  CHECK(exchange({&a}, {1}) == values{0});
  CHECK(exchange({&b, &a}, {20, 2}) == values{0, 1});
  const auto before = a;
  CHECK(exchange({&a}, {3}) == values{2});
  CHECK(exchange({&a, &b}, {4, 21}) == values{3, 20});
  auto back = before;
  CHECK(exchange({&back, &a}, {30, 5}) == values{2, 4});
  a = before;
  CHECK(exchange({&a, &back, &b}, {3, 31, 22}) == values{2, 30, 21});
  spoil_free_rows(contexts.pool());
  CHECK(exchange({&a, &back, &b}, {0, 0, 0}) == values{3, 31, 22});
}
