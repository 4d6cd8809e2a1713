#include "net/cluster/node_frames.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

using parley::net::node_frames;

namespace {

std::string header(std::uint32_t payload) {
  std::string bytes(node_frames::header_bytes, '\x7f');
  for (int i = 0; i < 4; ++i) bytes[static_cast<std::size_t>(4 + i)] = static_cast<char>(payload >> (24 - 8 * i));
  return bytes;
}

std::string frame(std::uint32_t payload) {
  return header(payload) + std::string(payload, 'x');
}

/// Passes the stream through `node_frames` in pieces of that size; returns how much may be forwarded after each piece.
std::vector<std::size_t> released(const std::string& stream, std::size_t piece, node_frames frames) {
  std::vector<std::size_t> so_far;
  bool good = true;
  for (std::size_t fed = 0; fed < stream.size();) {
    const auto next = std::string_view(stream).substr(fed, piece);
    good &= frames.feed(next);
    fed += next.size();
    good &= frames.held() <= fed;
    so_far.push_back(fed - frames.held());
  }
  REQUIRE(good);
  return so_far;
}

} // namespace

TEST_CASE("small frames pass as they come, in whatever pieces") {
  const std::string stream = frame(0) + frame(1) + frame(1000) + frame(0) + frame(node_frames::trusted);
  for (const std::size_t piece : {std::size_t(1), std::size_t(7), std::size_t(32), std::size_t(33), stream.size()}) {
    const auto so_far = released(stream, piece, node_frames(1u << 30));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < so_far.size(); ++i) wrong += so_far[i] != std::min((i + 1) * piece, stream.size());
    CHECK(wrong == 0);
  }
}

TEST_CASE("of a large frame not even its header is complete until all of it has come") {
  constexpr std::uint32_t large = node_frames::trusted + 1;
  const std::string before = frame(5);
  const std::string stream = before + frame(large) + frame(3);
  const std::size_t held_from = before.size() + node_frames::header_bytes - 1;
  const std::size_t end_of_large = before.size() + node_frames::header_bytes + large;
  for (const std::size_t piece : {std::size_t(1), std::size_t(4096), std::size_t(65'536), stream.size()}) {
    const auto so_far = released(stream, piece, node_frames(large));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < so_far.size(); ++i) {
      const auto fed = std::min((i + 1) * piece, stream.size());
      wrong += so_far[i] != (fed >= end_of_large ? fed : std::min(fed, held_from));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a promise above the bound is seen in its header") {
  node_frames frames(1000);
  CHECK(frames.feed(frame(1000)));
  CHECK_FALSE(frames.feed(header(1001)));
  node_frames others(256u << 20);
  CHECK_FALSE(others.feed(header(0x40000000)));
  node_frames third(256u << 20);
  CHECK_FALSE(third.feed(header(0xffffffff)));
}
