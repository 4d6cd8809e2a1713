#include "net/channel/frame_buffer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using parley::net::frame_buffer;

namespace {

struct filled {
  std::string text;
  std::size_t allocations = 0;
  std::size_t most_memory = 0;
};

/// Feeds `size` bytes in pieces of at most `piece`, like a socket; `announced`: each piece's size is known in advance.
filled fill(std::size_t size, std::size_t piece, bool announced) {
  frame_buffer buffer;
  filled result;
  const char* last = nullptr;
  for (std::size_t done = 0; done < size;) {
    const auto room = buffer.prepare(announced ? size - done : 1);
    REQUIRE_FALSE(room.empty());
    const std::size_t n = std::min({room.size(), piece, size - done});
    for (std::size_t i = 0; i < n; ++i) room[i] = static_cast<char>('a' + (done + i) % 26);
    if (done > 0 && room.data() - done != last) {
      ++result.allocations;
      last = room.data() - done;
      result.most_memory = done + room.size();
    }
    buffer.commit(n);
    done += n;
  }
  result.text = buffer.take();
  CHECK(buffer.size() == 0);
  return result;
}

bool right(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != static_cast<char>('a' + i % 26)) return false;
  }
  return true;
}

} // namespace

TEST_CASE("messages of any size come out whole") {
  const std::size_t size = GENERATE(0, 1, 127, 128, 129, 1535, 1536, 1537, 5000, 85'000, 131'072, 131'073, 700'000);
  const std::size_t piece = GENERATE(100, 65'536, 10'000'000);
  const bool announced = GENERATE(true, false);
  const filled got = fill(size, piece, announced);
  CHECK(got.text.size() == size);
  CHECK(right(got.text));
}

TEST_CASE("a second of audio, alone or with a picture, costs one allocation behind its first bytes") {
  CHECK(fill(85'000, 65'536, true).allocations == 1);
  CHECK(fill(135'000, 65'536, true).allocations == 1);
}

TEST_CASE("a message of 128 MiB is copied a few times, not for every piece") {
  const filled got = fill(128u << 20, 65'536, true);
  CHECK(got.text.size() == 128u << 20);
  CHECK(got.allocations <= 12);
}

TEST_CASE("an announced size alone allocates little") {
  frame_buffer buffer;
  CHECK(buffer.prepare(128u << 20).size() < 2000); // only what is left in the buffer itself
  buffer.commit(1);
  CHECK(buffer.prepare(128u << 20).size() <= frame_buffer::trusted);
}
