#include "protocol/call/call_input.hpp"
#include "protocol/call/call_request.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string>

// What strangers send to begin a call, and what a call's client sends in it. The first byte tells which.
namespace {

namespace call = parley::protocol::call;
using parley::test::expect;

void read_request(std::string_view bytes) {
  const auto line = bytes.find('\n');
  const auto type = bytes.substr(0, line);
  const auto read = call::read_call_request(type, line == bytes.npos ? "" : bytes.substr(line + 1));
  if (!read) return expect(!read.error().code.empty() && !read.error().message.empty(), "an error has words");
  expect(read->what.sdp.size() <= 2 * call::most_offer_bytes, "an offer is bounded");
  expect(read->what.sdp.find("\na=candidate") == std::string::npos, "nobody tells the server where to send");
  expect(read->what.payload_type >= 0 && read->what.payload_type < 128, "a type of RTP");
  const auto again = call::read_offer(read->what.sdp);
  expect(read->what.sdp.size() > call::most_offer_bytes || (again && again->mid == read->what.mid),
         "what was read can be read");
}

/// Packets, each behind a byte of its length and one of the time that has passed.
void hear(std::string_view bytes) {
  call::call_input input(111);
  parley::protocol::time_point now{std::chrono::hours(1)};
  double passed_s = 0;
  std::size_t heard = 0;
  while (bytes.size() > 2) {
    const auto size = std::min<std::size_t>(static_cast<unsigned char>(bytes[0]), bytes.size() - 2);
    const std::chrono::milliseconds pause(static_cast<unsigned char>(bytes[1]));
    now += pause;
    passed_s += static_cast<double>(pause.count()) / 1000;
    const auto samples = input.take(std::as_bytes(std::span(bytes.substr(2, size))), now);
    expect(std::all_of(samples.begin(), samples.end(), [](float x) { return std::isfinite(x); }),
           "samples are numbers");
    heard += samples.size();
    bytes.remove_prefix(2 + size);
  }
  const double most_s = call::call_input::most_ahead_s + call::call_input::pace * passed_s;
  expect(static_cast<double>(heard) <= most_s * call::heard_rate + 1, "no faster than it may be");
}

} // namespace

void parley::test::fuzz(std::string_view bytes) {
  if (bytes.empty()) return;
  bytes.front() == 'r' ? read_request(bytes.substr(1)) : hear(bytes.substr(1));
}
