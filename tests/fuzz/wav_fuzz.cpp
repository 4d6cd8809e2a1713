#include "protocol/media/voice.hpp"
#include "protocol/media/wav.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <cmath>

void parley::test::fuzz(std::string_view bytes) {
  const auto samples = protocol::read_wav(bytes, {16'000, 0, 5});
  if (!samples) {
    expect(!samples.error().empty(), "an error has words");
    return;
  }
  expect(samples->size() <= 5 * 16'000 + 1'000, "no longer than allowed");
  for (const auto x : *samples) expect(std::isfinite(x), "samples are numbers");
  const auto again = protocol::read_wav(protocol::write_wav(*samples, 16'000));
  expect(samples->empty() || (again && again->size() == samples->size()), "what was read can be written");
}
