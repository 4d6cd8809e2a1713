#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/wire_media.hpp"
#include "protocol/openai/talk.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <string>

using namespace parley::protocol;
using parley::test::expect;

namespace {

bool is_json(std::string_view text) {
  return json::scan(text).outcome == json::verdict::good;
}

} // namespace

// Completion requests, a session's answers to them, and what a recording keeps of both.
void parley::test::fuzz(std::string_view bytes) {
  const auto request = read_openai_request(bytes);
  if (request) {
    const auto frame = peek(request->append);
    expect(frame && frame->type == client_event_type::input_append, "a request becomes an append");
    const auto turn = decode_chat_append(*frame);
    expect(turn || !turn.error().message.empty(), "the session reads it, or has words");
  } else {
    expect(!request.error().message.empty(), "an error has words");
  }

  for (const char* body : {R"({"messages":[]})", R"({"messages":[],"stream":true,"modalities":["audio"]})"}) {
    openai_talk talk(*read_openai_request(body), 0);
    const auto step = talk.on_frame(bytes);
    expect(step.to_session.empty() || is_json(step.to_session), "a session hears JSON");
    if (step.fault) expect(is_json(encode_openai_error(*step.fault)), "a client hears JSON");
    if (!talk.streaming() && !step.to_client.empty()) expect(is_json(step.to_client), "a client hears JSON");
  }

  const auto line = separate_media(bytes, [](media_kind, std::string_view) { return std::string("null"); });
  expect(line.has_value() == is_json(bytes), "JSON is kept, and nothing else");
  if (line) expect(is_json(*line) && line->find('\n') == std::string::npos, "it is kept in one line");
}
