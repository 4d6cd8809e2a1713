#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/event_writer.hpp"
#include "protocol/codec/wire_media.hpp"
#include "protocol/openai/completions/completion_turn.hpp"
#include "protocol/openai/completions/talk.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <string>
#include <variant>

using namespace parley::protocol;
using parley::test::expect;

namespace {

bool is_json(std::string_view text) {
  return json::scan(text).outcome == json::verdict::good;
}

} // namespace

// Completion requests, and what a recording keeps of their turns, or of any frame.
void parley::test::fuzz(std::string_view bytes) {
  const auto request = read_openai_request(std::string(bytes));
  if (request) {
    const auto turn = completion_turn(request->prompt, 0).make();
    expect(turn || !turn.error().message.empty(), "it becomes a turn, or there are words for why not");
    if (turn) {
      expect(checked(*turn).has_value(), "what was read passes the checks of events");
      const auto frame = written(*turn);
      const auto event = peek(frame);
      expect(event && event->type == client_event_type::input_append, "a recording has it as an append");
    }
  } else {
    expect(!request.error().message.empty(), "an error has words");
  }

  for (const char* body : {R"({"messages":[]})", R"({"messages":[],"stream":true,"modalities":["audio"]})"}) {
    openai_talk talk(*read_openai_request(body), 0);
    talk.begin();
    talk.on_event(session_created{});
    response_done done;
    done.text = bytes;
    for (const auto& each : talk.on_event(done)) {
      const auto* const reply = std::get_if<openai_reply>(&each);
      if (reply && !talk.streaming()) expect(is_json(reply->text), "a client hears JSON");
    }
    expect(is_json(encode_openai_error(openai_fault_of("invalid_payload", std::string(bytes)))), "a client hears JSON");
  }

  const auto line = separate_media(bytes, [](media_kind, std::string_view) { return std::string("null"); });
  expect(line.has_value() == is_json(bytes), "JSON is kept, and nothing else");
  if (line) expect(is_json(*line) && line->find('\n') == std::string::npos, "it is kept in one line");
}
