#include "protocol/guest/heard.hpp"
#include "protocol/guest/session.hpp"
#include "protocol/guest/silence.hpp"
#include "protocol/guest/transcripts.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <variant>
#include <vector>

// The one session of a client inside the process.
using namespace parley::protocol;
using namespace std::chrono_literals;

namespace {

using effect = std::variant<guest::open_session, guest::to_session, guest::turn_to_session, guest::drop_session>;
using effects = std::vector<effect>;

std::string word_of(const client_event& event) {
  if (std::holds_alternative<init_event>(event)) return "init";
  if (std::holds_alternative<close_event>(event)) return "close:" + std::get<close_event>(event).reason;
  if (const auto* const result = std::get_if<tool_result_event>(&event)) return "result:" + result->call_id;
  const auto* const units = std::get_if<append_event>(&event);
  if (units == nullptr) return "turn";
  if (!units->samples) return "context:" + std::to_string(units->context.size());
  const auto pictures = units->frames.empty() ? "" : "+" + std::to_string(units->frames.size());
  return "sound:" + std::to_string(units->samples->size()) + pictures + (units->force_listen ? "!" : "");
}

/// A guest's session, and what was done about it since the last look, as words.
struct fixture {
  effects out{};
  guest::session<effects> session{out, 3};

  std::string seen() {
    std::string words;
    for (const auto& each : std::exchange(out, {})) {
      words += words.empty() ? "" : " ";
      if (const auto* const opened = std::get_if<guest::open_session>(&each))
        words += "open:" + std::to_string(opened->number);
      else if (const auto* const said = std::get_if<guest::to_session>(&each))
        words += std::to_string(said->number) + ":" + word_of(said->event);
      else if (const auto* const dropped = std::get_if<guest::drop_session>(&each))
        words += std::string(dropped->unused ? "drop unused:" : "drop:") + std::to_string(dropped->number);
      else
        words += "ask:" + std::to_string(std::get<guest::turn_to_session>(each).number);
    }
    return words;
  }

  void open_duplex() {
    session.open(mode::audio, {}, time_point(8s));
    session.begin();
    seen();
  }
};

} // namespace

TEST_CASE("guest: a session is opened, waits for a slot until a time, is ready, and is closed") {
  fixture of;
  CHECK_FALSE(of.session.is_open());
  CHECK_FALSE(of.session.give_up());
  of.session.open(mode::chat, {}, time_point(8s));
  CHECK(of.seen() == "open:1 1:init");
  CHECK(of.session.is_chat());
  CHECK_FALSE(of.session.is_duplex());
  CHECK(of.session.waits());
  CHECK(of.session.give_up() == time_point(8s));
  CHECK(of.session.begin());
  CHECK(of.session.ready());
  CHECK_FALSE(of.session.give_up());
  CHECK_FALSE(of.session.begin()); // a session begins once
  of.session.close();
  CHECK(of.seen() == "1:close:user_stop drop:1");
  CHECK_FALSE(of.session.ready());
  of.session.close(); // there is none
  CHECK(of.seen().empty());
}

TEST_CASE("guest: what comes from a session that was dropped is not heeded") {
  fixture of;
  CHECK_FALSE(of.session.heeds(0));
  of.session.open(mode::chat, {});
  CHECK(of.session.heeds(1));
  of.session.close(true);
  CHECK_FALSE(of.session.heeds(1));
  of.session.open(mode::audio, {});
  CHECK_FALSE(of.session.heeds(1));
  CHECK(of.session.heeds(2));
  CHECK(of.session.waits()); // the next one has not begun
  CHECK(of.seen() == "open:1 1:init 1:close:user_stop drop unused:1 open:2 2:init");
}

TEST_CASE("guest: a duplex session hears whole seconds, two ahead of its answers") {
  fixture of;
  CHECK_FALSE(of.session.hear(std::vector<float>(40'000)));
  of.open_duplex();
  of.session.feed(false);
  CHECK(of.seen() == "1:sound:16000 1:sound:16000");
  of.session.hear(std::vector<float>(8'000));
  of.session.feed(false);
  CHECK(of.seen().empty());
  of.session.answered();
  of.session.feed(false);
  CHECK(of.seen() == "1:sound:16000");
}

TEST_CASE("guest: that sound was dropped is told once") {
  fixture of;
  CHECK_FALSE(of.session.hear(std::vector<float>(48'000)));
  CHECK(of.session.hear(std::vector<float>(1)));
  CHECK_FALSE(of.session.hear(std::vector<float>(48'000)));
}

TEST_CASE("guest: news is told between what the model says, pictures go with the next sound") {
  fixture of;
  of.open_duplex();
  CHECK(of.session.tell(role::system, "It rains."));
  of.session.show(std::make_shared<const std::string>("a picture"));
  of.session.hear(std::vector<float>(16'000));
  of.session.feed(true);
  CHECK(of.seen() == "1:sound:16000+1");
  CHECK(of.session.telling());
  of.session.feed(false);
  CHECK(of.seen() == "1:context:1");
}

TEST_CASE("guest: a response that is cut short is not heard to its end") {
  fixture of;
  of.open_duplex();
  of.session.hear(std::vector<float>(16'000));
  of.session.feed(false);
  of.session.speaks("resp_a");
  CHECK(of.session.speaks());
  of.session.hear(std::vector<float>(100));
  of.seen();
  of.session.cut();
  CHECK_FALSE(of.session.speaks());
  CHECK(of.session.was_cut("resp_a"));
  CHECK_FALSE(of.session.was_cut("resp_b"));
  of.session.feed(false);
  CHECK(of.seen() == "1:sound:100!"); // at once
  of.session.speaks("resp_b");
  of.session.close();
  CHECK_FALSE(of.session.speaks());
}

TEST_CASE("guest: who sends nothing is silent after a while, a piece at a time") {
  guest::silence silence;
  const time_point begin(1h);
  CHECK_FALSE(silence.due());
  silence.heard(begin);
  CHECK(silence.due() == begin + 300ms);
  silence.fill(begin + 300ms);
  CHECK(silence.due() == begin + 400ms);
  silence.forgive(begin + 5s); // it did not matter until now
  CHECK(silence.due() == begin + 5s + 100ms);
  silence.heard(begin + 6s);
  silence.forgive(begin + 6s);
  CHECK(silence.due() == begin + 6s + 300ms);
}

TEST_CASE("guest: each turn that is written down is answered once") {
  guest::transcripts<std::string> turns;
  const auto first = turns.ask(nullptr, "item_a");
  const auto second = turns.ask(nullptr, "item_b", "zh");
  CHECK(first.number != second.number);
  CHECK(second.language == "zh");
  CHECK(turns.answered(second.number) == "item_b");
  CHECK_FALSE(turns.answered(second.number));
  CHECK(turns.answered(first.number) == "item_a");
}

TEST_CASE("guest: a delta says what its kind says, and its sound is what the wire would have had") {
  output_delta delta;
  delta.text = "words";
  delta.audio = std::make_shared<const std::vector<float>>(std::vector<float>{0.5f, 2});
  delta.kind = output_kind::text;
  CHECK(guest::words_in(delta) == "words");
  CHECK_FALSE(guest::sound_in(delta));
  delta.kind = output_kind::audio;
  CHECK(guest::words_in(delta).empty());
  REQUIRE(guest::sound_in(delta));
  CHECK(*guest::sound_in(delta) == std::vector<float>{0.5f, 1});
  delta.audio = std::make_shared<const std::vector<float>>(std::vector<float>{0.5f, -1});
  CHECK(guest::sound_in(delta) == delta.audio); // not a copy
  delta.kind = output_kind::listen;
  CHECK_FALSE(guest::sound_in(delta));
}
