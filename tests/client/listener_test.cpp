#include "client/listener.hpp"

#include "client/playback_timeline.hpp"
#include "protocol/media/wav.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

using parley::client::listener;
using parley::client::playback_timeline;
using parley::client::save_heard;
using seconds = listener::seconds;

namespace {

constexpr std::size_t second = 24'000;

} // namespace

TEST_CASE("sound is played when it comes and in one piece when it comes in time") {
  listener ear;
  ear.sound(seconds(1.0), second);
  ear.sound(seconds(1.9), second);
  ear.sound(seconds(3.0), second / 2); // just in time
  ear.end_of_turn();
  REQUIRE(ear.heard().size() == 3);
  CHECK(ear.heard()[1].begin.count() == Approx(2.0));
  CHECK(ear.heard()[1].first_sample == second);
  CHECK(ear.heard()[2].begin.count() == Approx(3.0));
  CHECK(ear.gaps() == 0);
  CHECK(ear.heard_time().count() == Approx(2.5));
}

TEST_CASE("a buffer that runs empty inside of a turn is a gap, between turns it is not") {
  listener ear;
  ear.sound(seconds(1.0), second);
  ear.sound(seconds(2.25), second);
  ear.end_of_turn();
  ear.sound(seconds(9.0), second);
  CHECK(ear.gaps() == 1);
  CHECK(ear.gap_time().count() == Approx(0.25));
  CHECK(ear.heard()[2].begin.count() == Approx(9.0));
}

TEST_CASE("a lead hides what is late by less") {
  listener ear(seconds(0.3));
  ear.sound(seconds(1.0), second);
  ear.sound(seconds(2.25), second);
  CHECK(ear.gaps() == 0);
  CHECK(ear.heard()[0].begin.count() == Approx(1.3));
  CHECK(ear.heard()[1].begin.count() == Approx(2.3));
  ear.sound(seconds(3.4), second);
  CHECK(ear.gaps() == 1);
}

TEST_CASE("an interruption drops what was not played yet") {
  listener ear;
  ear.sound(seconds(1.0), second);
  ear.sound(seconds(1.1), second);
  ear.silence(seconds(1.5));
  REQUIRE(ear.heard().size() == 1);
  CHECK(ear.heard()[0].samples == second / 2);
  CHECK(ear.received_time().count() == Approx(2));
  CHECK(ear.heard_time().count() == Approx(0.5));
  ear.sound(seconds(1.6), second);
  CHECK(ear.heard()[1].begin.count() == Approx(1.6));
  CHECK(ear.heard()[1].first_sample == 2 * second);
  CHECK(ear.gaps() == 0);
}

TEST_CASE("a listen after the end of a turn lets it play out") {
  listener ear;
  ear.sound(seconds(1.0), second);
  ear.end_of_turn();
  ear.silence(seconds(1.1));
  CHECK(ear.heard_time().count() == Approx(1.0));
  ear.sound(seconds(1.5), second); // the next turn waits until the player has room
  CHECK(ear.heard()[1].begin.count() == Approx(2.0));
}

TEST_CASE("a session is saved with its sound in its place in time") {
  playback_timeline heard;
  const std::vector<float> loud(second, 0.5F), soft(second, 0.25F);
  heard.take(seconds(1), loud);
  heard.end_of_turn();
  heard.take(seconds(3), soft);
  heard.silence(seconds(3.5));
  const auto line = heard.timeline(seconds(5));
  REQUIRE(line.size() == 5 * second);
  CHECK(line[second - 1] == 0);
  CHECK(line[second] == 0.5F);
  CHECK(line[2 * second] == 0);
  CHECK(line[3 * second] == 0.25F);
  CHECK(line[3 * second + second / 2] == 0);

  const auto path = std::filesystem::temp_directory_path() / "parley_listener_test.wav";
  std::ostringstream out, err;
  CHECK(save_heard(path.string(), line, out, err));
  CHECK(out.str() == "saved               " + path.string() + ", 5.00 s\n");
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove(path);
  const auto read = parley::protocol::read_wav(bytes, {.rate = 24'000});
  REQUIRE(read);
  CHECK(read->size() == line.size());
  CHECK((*read)[second] == Approx(0.5).margin(1e-4));
  CHECK_FALSE(save_heard("/nowhere/x.wav", line, out, err));
  CHECK(err.str() == "parley probe: --save: cannot write /nowhere/x.wav\n");
}
