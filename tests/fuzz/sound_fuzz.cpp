#include "protocol/media/sound_file.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <cmath>

/// Files of every kind that is read; what libsndfile and its decoders do with broken ones is looked at here too.
void parley::test::fuzz(std::string_view bytes) {
  const auto samples = protocol::read_sound(bytes, {16'000, 0, 5});
  if (!samples) {
    expect(!samples.error().empty(), "an error has words");
    return;
  }
  expect(samples->size() <= 5 * 16'000 + 1'000, "no longer than allowed");
  for (const auto x : *samples) expect(std::isfinite(x) && x >= -1 && x <= 1, "samples are numbers within [-1, 1]");
}
