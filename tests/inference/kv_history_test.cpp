#include "inference/vocoder/kv_history.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

using parley::inference::speech::kv_history;

namespace {

/// [2, 1, n, 2], every value different.
at::Tensor piece(std::int64_t n, double first) {
  return at::arange(first, first + static_cast<double>(4 * n)).view({2, 1, n, 2});
}

} // namespace

TEST_CASE("a history keeps the ends of what a single tensor would keep") {
  for (const auto& [front, back] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 3}, {3, 9}, {7, 5}, {9, 4}, {0, 2}, {13, 0}, {6, 7}}) {
    INFO("front " << front << ", back " << back);
    kv_history history(2);
    at::Tensor all = piece(0, 0);
    for (const std::int64_t n : {6, 1, 4, 2}) {
      const auto fresh = piece(n, 100.0 * static_cast<double>(n));
      history.push_front(fresh);
      all = at::cat({fresh, all}, 2);
    }
    REQUIRE(history.rows() == 13);
    REQUIRE(at::equal(history.joined(), all));
    history.keep_ends(front, back);
    CHECK(history.rows() == front + back);
    CHECK(at::equal(history.joined(), at::cat({all.narrow(2, 0, front), all.narrow(2, 13 - back, back)}, 2)));
  }
}

TEST_CASE("histories that began alike share their pieces, and one's present is not the other's") {
  kv_history voice(2);
  voice.push_front(piece(8, 0));
  auto talk = voice;
  talk.push_front(piece(2, 50));
  talk.keep_ends(4, 3);
  CHECK(voice.rows() == 8);
  CHECK(talk.rows() == 7);
  REQUIRE(talk.pieces().size() == 3);
  CHECK(talk.pieces()[1].is_alias_of(voice.pieces()[0]));
  CHECK(talk.pieces()[2].is_alias_of(voice.pieces()[0]));
}
