#include "protocol/session/unit_gatherer.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <random>

namespace parley::protocol::test {

namespace {

using namespace std::chrono_literals;

const std::chrono::steady_clock::time_point noon{12h};

append_event sound(std::size_t samples, bool forced = false, float first = 0) {
  auto data = std::make_shared<std::vector<float>>(samples);
  std::iota(data->begin(), data->end(), first);
  append_event event;
  event.samples = std::move(data);
  event.force_listen = forced;
  return event;
}

append_event with_frames(std::size_t samples, std::vector<std::string> names,
                         std::optional<int> slices = std::nullopt) {
  append_event event = sound(samples);
  for (std::string& name : names) event.frames.push_back(std::make_shared<const std::string>(std::move(name)));
  event.max_slice_nums = slices;
  return event;
}

std::string frames_of(const gathered_unit& unit) {
  std::string names;
  for (const image_file& frame : unit.frames) names += *frame;
  return names;
}

} // namespace

TEST_CASE("an append of one unit is not copied") {
  unit_gatherer gatherer(1);
  std::vector<gathered_unit> units;
  append_event event = sound(unit_samples);
  const float* samples = event.samples->data();
  gatherer.append(std::move(event), 1, noon, units);
  REQUIRE(units.size() == 1);
  CHECK(units[0].samples->data() == samples);
  CHECK(units[0].append == 1);
  CHECK(units[0].received == noon);
  CHECK(gatherer.pending_samples() == 0);
}

TEST_CASE("appends of any length become the same units") {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    unit_gatherer gatherer(1);
    std::vector<gathered_unit> units;
    gatherer.append(sound(unit_samples), 1, noon, units);
    units.clear();
    std::size_t sent = 0;
    for (std::uint64_t ordinal = 2; sent < 20 * unit_samples; ++ordinal) {
      constexpr std::size_t lengths[] = {1, 320, 4096, 15'999, 16'000, 16'001, 50'000, 160'000};
      const std::size_t length = lengths[random() % std::size(lengths)];
      const std::size_t before = units.size();
      gatherer.append(sound(length, false, static_cast<float>(sent)), ordinal, noon, units);
      sent += length;
      for (std::size_t i = before; i < units.size(); ++i) CHECK(units[i].append == ordinal);
      REQUIRE(units.size() == sent / unit_samples);
      REQUIRE(gatherer.pending_samples() == sent % unit_samples);
    }
    for (std::size_t i = 0; i < units.size(); ++i) {
      REQUIRE(units[i].samples->size() == unit_samples);
      CHECK(units[i].samples->front() == static_cast<float>(i * unit_samples));
      CHECK(units[i].samples->back() == static_cast<float>((i + 1) * unit_samples - 1));
    }
  }
}

TEST_CASE("frames belong to the first unit that their append completes") {
  unit_gatherer gatherer(3);
  std::vector<gathered_unit> units;

  SECTION("the first of several units") {
    gatherer.append(with_frames(40'000, {"a", "b"}), 1, noon, units);
    REQUIRE(units.size() == 2);
    CHECK(frames_of(units[0]) == "ab");
    CHECK(units[0].max_slice_nums == 3);
    CHECK(frames_of(units[1]).empty());
  }
  SECTION("they wait for a unit, the newest four of them") {
    gatherer.append(sound(16'000), 1, noon, units);
    units.clear();
    gatherer.append(with_frames(320, {"a", "b", "c"}, 9), 1, noon, units);
    gatherer.append(with_frames(320, {"d", "e"}, 2), 2, noon, units);
    CHECK(units.empty());
    gatherer.append(sound(16'000), 3, noon, units);
    REQUIRE(units.size() == 1);
    CHECK(frames_of(units[0]) == "bcde");
    CHECK(units[0].max_slice_nums == 2);
    CHECK(units[0].append == 3);
    gatherer.append(sound(16'000), 4, noon, units);
    CHECK(frames_of(units[1]).empty());
  }
  SECTION("an append's own slices hold for its frames only") {
    gatherer.append(with_frames(16'000, {"a"}, 7), 1, noon, units);
    gatherer.append(with_frames(16'000, {"b"}), 2, noon, units);
    CHECK(units.at(0).max_slice_nums == 7);
    CHECK(units.at(1).max_slice_nums == 3);
  }
}

TEST_CASE("a first append that is shorter than a unit becomes one, behind silence") {
  unit_gatherer gatherer(1);
  std::vector<gathered_unit> units;
  append_event event = with_frames(320, {"a"});
  event.input_id = "mine";
  event.force_listen = true;
  gatherer.append(std::move(event), 1, noon, units);
  REQUIRE(units.size() == 1);
  const auto& first = units.front();
  REQUIRE(first.samples->size() == unit_samples);
  CHECK(first.samples->at(unit_samples - 321) == 0);
  CHECK(first.samples->at(unit_samples - 320 + 7) == 7);
  CHECK(frames_of(first) == "a");
  CHECK(first.force_listen);
  CHECK(first.input_id == "mine");
  CHECK(gatherer.pending_samples() == 0);
  gatherer.append(sound(320), 2, noon, units);
  CHECK(units.size() == 1);
  CHECK(gatherer.pending_samples() == 320);
}

TEST_CASE("a long first append is not padded") {
  unit_gatherer gatherer(1);
  std::vector<gathered_unit> units;
  gatherer.append(sound(20'000), 1, noon, units);
  REQUIRE(units.size() == 1);
  CHECK(units.front().samples->at(7) == 7);
  CHECK(gatherer.pending_samples() == 4'000);
}

TEST_CASE("force_listen acts on every unit with a sample of its append, and on no other") {
  unit_gatherer gatherer(1);
  std::vector<gathered_unit> units;
  gatherer.append(sound(16'320), 1, noon, units);       // one unit and 320 samples
  gatherer.append(sound(320, true), 2, noon, units);    // goes into the second unit
  gatherer.append(sound(15'360), 3, noon, units);       // completes the second
  gatherer.append(sound(8'000), 4, noon, units);        // goes into the third
  gatherer.append(sound(24'000, true), 5, noon, units); // completes the third and makes the fourth
  gatherer.append(sound(16'000), 6, noon, units);
  std::string flags;
  for (const gathered_unit& unit : units) flags += unit.force_listen ? '!' : '.';
  CHECK(flags == ".!!!.");
}

TEST_CASE("context waits for the next unit, whichever append completes it") {
  unit_gatherer gatherer(1);
  std::vector<gathered_unit> units;
  const auto note = [](std::string text) {
    append_event event;
    event.context.push_back({conversation::role::user, std::move(text)});
    return event;
  };
  gatherer.append(note("a"), 1, noon, units);
  CHECK(units.empty());
  gatherer.append(sound(unit_samples), 2, noon, units);
  append_event partial = sound(8'000);
  partial.context = note("b").context;
  gatherer.append(std::move(partial), 3, noon, units);
  gatherer.append(note("c"), 4, noon, units);
  CHECK(gatherer.pending_context().size() == 2);
  gatherer.append(sound(8'000 + unit_samples), 5, noon, units);
  REQUIRE(units.size() == 3);
  REQUIRE(units[0].context.size() == 1);
  CHECK(units[0].context[0].text == "a");
  CHECK(units[0].append == 2);
  REQUIRE(units[1].context.size() == 2);
  CHECK(units[1].context[0].text == "b");
  CHECK(units[1].context[1].text == "c");
  CHECK(units[2].context.empty());
  CHECK(gatherer.pending_context().empty());
}

TEST_CASE("context alone is not a session's first sound") {
  unit_gatherer gatherer(1);
  std::vector<gathered_unit> units;
  append_event note;
  note.context.push_back({conversation::role::user, "a"});
  gatherer.append(std::move(note), 1, noon, units);
  gatherer.append(sound(320), 2, noon, units);
  CHECK(units.size() == 1);
}

} // namespace parley::protocol::test
