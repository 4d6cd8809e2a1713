#include "protocol/call/call_input.hpp"
#include "protocol/call/jitter_buffer.hpp"
#include "protocol/call/opus_stream.hpp"
#include "protocol/call/playout.hpp"
#include "protocol/call/rtp.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

// A call's sound between RTP and samples, without sockets.
using namespace parley::protocol;
using namespace parley::protocol::call;
using std::chrono::milliseconds;

namespace {

constexpr time_point start{std::chrono::hours(1)};

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int each : values) out.push_back(static_cast<std::byte>(each));
  return out;
}

rtp_packet packet(std::uint16_t sequence, std::uint32_t timestamp, std::span<const std::byte> payload) {
  return {111, false, sequence, timestamp, 7, payload};
}

/// A tone of 440 Hz at 24 kHz.
std::vector<float> tone(double seconds) {
  std::vector<float> out(static_cast<std::size_t>(seconds * spoken_rate));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = 0.5F * static_cast<float>(std::sin(2 * 3.14159265358979 * 440 * static_cast<double>(i) / spoken_rate));
  return out;
}

std::vector<std::vector<std::byte>> encoded(const std::vector<float>& samples) {
  opus_encoder encoder;
  std::vector<std::vector<std::byte>> out;
  for (std::size_t at = 0; at + frame_samples <= samples.size(); at += frame_samples) {
    const auto made = encoder.encode(std::span(samples).subspan(at, frame_samples));
    out.emplace_back(made.begin(), made.end());
  }
  return out;
}

double loudness(std::span<const float> samples) {
  return std::sqrt(std::inner_product(samples.begin(), samples.end(), samples.begin(), 0.0) /
                   static_cast<double>(samples.size()));
}

/// Crossings of zero upwards, a second.
double pitch(std::span<const float> samples, int rate) {
  int count = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) count += samples[i - 1] < 0 && samples[i] >= 0;
  return count * static_cast<double>(rate) / static_cast<double>(samples.size());
}

} // namespace

TEST_CASE("a packet of RTP is read as it was written") {
  const auto payload = bytes({1, 2, 3});
  const auto wire = write_rtp({111, true, 0xFFFE, 0x89ABCDEF, 0x01020304, payload});
  REQUIRE(wire.size() == 15);
  const auto read = read_rtp(wire);
  REQUIRE(read);
  CHECK(read->payload_type == 111);
  CHECK(read->marker);
  CHECK(read->sequence == 0xFFFE);
  CHECK(read->timestamp == 0x89ABCDEF);
  CHECK(read->source == 0x01020304);
  CHECK(std::ranges::equal(read->payload, payload));
}

TEST_CASE("contributors, extensions and padding of RTP are left out") {
  auto wire = bytes({0xB2, 111, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7}); // padded, extended, two contributors
  const auto more = bytes({0, 0, 0, 1, 0, 0, 0, 2, 0xBE, 0xDE, 0, 1, 9, 9, 9, 9, 42, 43, 0, 2});
  wire.insert(wire.end(), more.begin(), more.end());
  const auto read = read_rtp(wire);
  REQUIRE(read);
  CHECK(std::ranges::equal(read->payload, bytes({42, 43})));
}

TEST_CASE("what claims more than it has is no RTP") {
  const auto whole = write_rtp(packet(1, 0, bytes({1, 2, 3})));
  for (std::size_t size = 0; size <= 12; ++size) CHECK_FALSE(read_rtp(std::span(whole).first(size)));
  auto wrong = whole;
  wrong[0] = std::byte{0x40}; // version 1
  CHECK_FALSE(read_rtp(wrong));
  wrong[0] = std::byte{0x8F}; // 15 contributors
  CHECK_FALSE(read_rtp(wrong));
  wrong[0] = std::byte{0xA0}; // padding of 3 bytes: nothing is left
  CHECK_FALSE(read_rtp(wrong));
  wrong.back() = std::byte{0};
  CHECK_FALSE(read_rtp(wrong));
  wrong[0] = std::byte{0x90}; // an extension that is longer than the packet
  CHECK_FALSE(read_rtp(wrong));
  wrong = whole;
  wrong[1] = std::byte{200 & 0x7F}; // a report of RTCP
  CHECK_FALSE(read_rtp(wrong));
  CHECK_FALSE(read_rtp(write_rtp(packet(1, 0, std::vector<std::byte>(most_rtp_payload + 1)))));
}

TEST_CASE("packets in their order pass at once, also where their numbers begin again") {
  jitter_buffer buffer;
  const auto payload = bytes({1});
  for (int i = 0; i < 100; ++i) {
    const auto number = static_cast<std::uint16_t>(65'500 + i);
    REQUIRE(buffer.push(packet(number, 960U * static_cast<std::uint32_t>(i) - 48'000, payload), 960, start));
    const auto out = buffer.pop(start);
    REQUIRE(out);
    CHECK(out->lost == 0);
    CHECK_FALSE(buffer.pop(start));
  }
}

TEST_CASE("packets that come in another order are put right") {
  jitter_buffer buffer;
  std::vector<int> heard;
  for (const int i : {0, 2, 3, 1, 4}) {
    const auto payload = bytes({i});
    REQUIRE(
        buffer.push(packet(static_cast<std::uint16_t>(i), static_cast<std::uint32_t>(960 * i), payload), 960, start));
    while (const auto out = buffer.pop(start)) {
      CHECK(out->lost == 0);
      heard.push_back(std::to_integer<int>(out->payload[0]));
    }
  }
  CHECK(heard == std::vector{0, 1, 2, 3, 4});
}

TEST_CASE("what does not come in time is lost, and what comes later is dropped") {
  jitter_buffer buffer;
  const auto payload = bytes({1});
  buffer.push(packet(10, 0, payload), 960, start);
  REQUIRE(buffer.pop(start));
  buffer.push(packet(13, 3 * 960, payload), 960, start);
  CHECK_FALSE(buffer.pop(start));
  CHECK_FALSE(buffer.pop(start + jitter_buffer::patience - milliseconds(1)));
  const auto out = buffer.pop(start + jitter_buffer::patience);
  REQUIRE(out);
  CHECK(out->lost == 2 * 960);
  CHECK(out->next_of_lost);
  CHECK_FALSE(buffer.push(packet(12, 2 * 960, payload), 960, start + jitter_buffer::patience));
  CHECK_FALSE(buffer.push(packet(13, 3 * 960, payload), 960, start + jitter_buffer::patience));
  CHECK(buffer.waiting() == 0);
}

TEST_CASE("a flood behind a gap is bounded") {
  jitter_buffer buffer;
  const auto payload = bytes({1});
  buffer.push(packet(0, 0, payload), 960, start);
  REQUIRE(buffer.pop(start));
  std::size_t most = 0;
  for (std::uint16_t i = 2; i < 5'000; i = static_cast<std::uint16_t>(i + 2)) { // each second one never comes
    buffer.push(packet(i, i * 960U, payload), 960, start);
    while (buffer.pop(start)) {
    }
    most = std::max(most, buffer.waiting());
  }
  CHECK(most == jitter_buffer::most_waiting);
}

TEST_CASE("a silence of the sender is no loss, and neither is a new beginning") {
  jitter_buffer buffer;
  const auto payload = bytes({1});
  buffer.push(packet(1, 0, payload), 960, start);
  buffer.pop(start);
  buffer.push(packet(2, 48'000, payload), 960, start); // nothing was sent for a second
  CHECK(buffer.pop(start)->lost == 0);
  buffer.push(packet(500, 48'000 * 60, payload), 960, start);
  const auto after = buffer.pop(start + jitter_buffer::patience);
  REQUIRE(after);
  CHECK(after->lost == 0);
  auto other = packet(3, 77, payload);
  other.source = 8;
  REQUIRE(buffer.push(other, 960, start));
  CHECK(buffer.pop(start)->lost == 0);
}

TEST_CASE("a tone survives Opus, from 24 kHz to 16 kHz") {
  const auto packets = encoded(tone(1));
  REQUIRE(packets.size() == 50);
  opus_decoder decoder;
  std::vector<float> heard;
  for (const auto& each : packets) {
    CHECK(opus_duration(each) == frame_time);
    decoder.decode({0, false, each}, heard);
  }
  REQUIRE(heard.size() == heard_rate);
  const auto steady = std::span(heard).subspan(heard_rate / 10);
  CHECK(pitch(steady, heard_rate) == Approx(440).margin(3));
  CHECK(loudness(steady) == Approx(0.5 / std::sqrt(2.0)).epsilon(0.1));
}

TEST_CASE("lost packets are made up for, in time and in sound") {
  const auto packets = encoded(tone(2));
  opus_decoder decoder;
  std::vector<float> heard;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (i % 10 == 5) continue; // each tenth is lost
    const bool after = i % 10 == 6;
    decoder.decode({after ? frame_time : 0, after, packets[i]}, heard);
  }
  CHECK(heard.size() == 2 * heard_rate);
  for (std::size_t at = heard_rate / 5; at + 320 <= heard.size(); at += 320)
    CHECK(loudness(std::span(heard).subspan(at, 320)) > 0.2); // 0.35 where nothing is lost
}

TEST_CASE("a long loss fades instead of going on for ever") {
  const auto packets = encoded(tone(0.5));
  opus_decoder decoder;
  std::vector<float> heard;
  for (const auto& each : packets) decoder.decode({0, false, each}, heard);
  const auto before = heard.size();
  decoder.decode({rtp_rate, true, packets.front()}, heard);
  CHECK(heard.size() == before + heard_rate + heard_rate / 50);
  CHECK(loudness(std::span(heard).subspan(before + heard_rate * 8 / 10, heard_rate / 10)) < 0.01);
}

TEST_CASE("bytes that are no Opus do no harm") {
  std::mt19937 random(1);
  opus_decoder decoder;
  for (int i = 0; i < 2'000; ++i) {
    std::vector<std::byte> noise(1 + random() % 300);
    for (auto& each : noise) each = static_cast<std::byte>(random());
    std::vector<float> heard;
    decoder.decode({frame_time, true, noise}, heard);
    CHECK(heard.size() <= heard_rate * 140 / 1000);
    CHECK(std::all_of(heard.begin(), heard.end(), [](float each) { return std::isfinite(each); }));
  }
}

TEST_CASE("frames are played at the pace of the clock") {
  playout out;
  out.add(std::make_shared<std::vector<float>>(tone(1)));
  std::vector<std::int64_t> sent;
  std::uint32_t last = 0;
  for (auto now = start; now < start + milliseconds(1'500); now += milliseconds(5)) {
    while (const auto frame = out.take(now)) {
      CHECK(frame->samples.size() == frame_samples);
      CHECK(frame->begins == sent.empty());
      if (!sent.empty()) CHECK(frame->timestamp - last == frame_time);
      CHECK((loudness(frame->samples) > 0.1) == (sent.size() < 50));
      last = frame->timestamp;
      sent.push_back((now - start).count() / 1'000'000);
    }
  }
  REQUIRE(sent.size() == 50 + playout::tail_frames);
  for (std::size_t i = 0; i < sent.size(); ++i) CHECK(sent[i] == static_cast<std::int64_t>(20 * i));
  CHECK(out.empty());
}

TEST_CASE("after silence, the stream goes on with time; after a late timer it catches up, a little") {
  playout out;
  const auto tenth = std::make_shared<std::vector<float>>(tone(0.1));
  out.add(tenth);
  const auto first = out.take(start);
  REQUIRE(first);
  out.clear();
  for (int i = 1; i <= playout::tail_frames; ++i) CHECK(out.take(start + milliseconds(20 * i)));
  CHECK_FALSE(out.take(start + milliseconds(200)));
  out.add(tenth);
  const auto next = out.take(start + milliseconds(1'000));
  REQUIRE(next);
  CHECK(next->begins);
  CHECK(next->timestamp - first->timestamp == 48'000);
  out.add(std::make_shared<std::vector<float>>(tone(2)));
  int at_once = 0;
  while (out.take(start + milliseconds(2'000))) ++at_once; // this thread slept for a second
  CHECK(at_once == playout::most_late / playout::frame + 1);
}

TEST_CASE("what is cleared is never heard") {
  playout out;
  out.add(std::make_shared<std::vector<float>>(tone(1)));
  REQUIRE(out.take(start));
  out.clear();
  int silent = 0;
  for (auto now = start; now < start + milliseconds(500); now += milliseconds(5)) {
    while (const auto frame = out.take(now)) {
      CHECK(loudness(frame->samples) == 0);
      ++silent;
    }
  }
  CHECK(silent == playout::tail_frames);
  CHECK(out.empty());
}

TEST_CASE("what a client says is heard in pieces, and no faster than it can be said") {
  const auto packets = encoded(tone(1));
  call_input input(111);
  std::size_t heard = 0;
  auto now = start;
  for (std::uint16_t i = 0; i < 50; ++i, now += milliseconds(20)) {
    const auto out = input.take(write_rtp(packet(i, i * frame_time, packets[i])), now);
    CHECK(out.size() % call_input::piece_samples == 0);
    heard += out.size();
  }
  CHECK(heard == heard_rate);
  CHECK(input.take(write_rtp({96, false, 50, 50 * frame_time, 7, packets[0]}), now).empty()); // of another type
  CHECK(input.take(packets[0], now).empty());                                                 // no RTP
  heard = 0;
  for (std::uint16_t i = 50; i < 5'000; ++i)
    heard += input.take(write_rtp(packet(i, i * frame_time, packets[i % 50])), now).size(); // 99 s of sound at once
  CHECK(heard <= static_cast<std::size_t>(call_input::most_ahead_s * heard_rate));
  CHECK(heard >= static_cast<std::size_t>((call_input::most_ahead_s - 1) * heard_rate));
}
