#include "base/utf8.hpp"
#include "protocol/json/document.hpp"
#include "protocol/openai/beta/beta_events.hpp"
#include "protocol/openai/live/client_event.hpp"
#include "protocol/openai/realtime/client_event.hpp"
#include "protocol/openai/shared/audio_format.hpp"
#include "protocol/speech/sound.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <string>
#include <variant>
#include <vector>

using namespace parley::protocol;
using parley::test::expect;

namespace {

bool is_json(std::string_view text) {
  return json::scan(text).outcome == json::verdict::good;
}

void expect_words(const openai::fault& why) {
  expect(!why.code.empty() && !why.message.empty(), "a fault has a code and words");
}

/// What the machine does with the parts of an event that its reader only passes on.
void use(const openai::realtime::client_event& event, openai::event_sound& sound) {
  if (const auto* update = std::get_if<openai::realtime::session_update>(&event)) {
    const auto next = openai::realtime::updated({}, update->session, &sound);
    next ? expect(is_json(openai::realtime::encode_session(*next, "sess_1", 1)), "a session is JSON")
         : expect_words(next.error());
  } else if (const auto* append = std::get_if<openai::realtime::audio_append>(&event)) {
    for (const auto* name : {"audio/pcm", "audio/pcmu", "audio/pcma"}) {
      speech::sound_decoder decode(*openai::audio_format_of(name, std::nullopt));
      std::vector<float> samples;
      if (const auto read = decode.feed(append->audio.view(), samples); !read)
        expect(!read.error().empty(), "a refusal has words");
    }
  } else if (const auto* made = std::get_if<openai::realtime::item_create>(&event)) {
    expect(is_json(openai::encode_item(made->one)), "an item is JSON");
  }
}

} // namespace

// The readers of what clients of OpenAI's Realtime, beta and Live APIs send, one event at a time.
void parley::test::fuzz(std::string_view bytes) {
  if (!base::utf8::valid(bytes)) return; // the WebSocket layer lets nothing else through
  double temperature = 0.8;
  const std::string from_beta = openai::beta::from_beta(bytes, temperature);
  expect(!is_json(bytes) || is_json(from_beta), "what the beta says stays JSON");
  openai::connection_budget budget(nullptr);
  openai::event_sound sound(budget, {});
  for (const std::string_view text : {bytes, std::string_view(from_beta)}) {
    const auto document = json::scan(text);
    const auto event = json::root(document);
    if (document.outcome != json::verdict::good || !event.is(json::kind::object)) continue;
    const auto read = openai::realtime::read_client_event(event, {}, sound);
    read ? use(*read, sound) : expect_words(read.error());
    auto spoken = openai::live::read_client_event(event, sound);
    if (!spoken) {
      expect_words(spoken.error());
    } else if (const auto* start = std::get_if<openai::live::session_start>(&*spoken)) {
      expect(is_json(openai::live::encode_session(start->config, "sess_1", 1)), "a session is JSON");
    }
  }
}
