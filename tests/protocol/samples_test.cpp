#include "tests/protocol/samples.hpp"

#include "protocol/codec/client_codec.hpp"

#include <catch2/catch.hpp>

using namespace parley::protocol;

namespace {

/// The reason why the sample's decoder refuses it; empty if it accepts it.
std::string refusal(const test::sample& one) {
  auto from = peek(one.text);
  if (!from) return from.error().reason.message;
  auto of = [](const auto& decoded) { return decoded ? std::string() : decoded.error().message; };
  auto chat = one.entry == "currentChatClientEvent";
  switch (from->type) {
  case client_event_type::session_init: return of(decode_session_init(*from, chat ? mode::chat : mode::video));
  case client_event_type::session_update: return of(decode_session_update(*from, mode::video));
  case client_event_type::input_append:
    if (chat) return of(decode_chat_append(*from));
    [[fallthrough]];
  case client_event_type::input_standalone:
  case client_event_type::input_audio_buffer_append: return of(decode_append(*from, mode::video, 4000));
  case client_event_type::input_tool_result: return of(decode_tool_result(*from));
  case client_event_type::session_close: return decode_close(*from).reason.empty() ? "no reason" : "";
  case client_event_type::unknown: return "unknown type";
  }
  return "no such type";
}

} // namespace

// schema_test.py checks the same samples against the schema.
TEST_CASE("samples: the decoder takes the canonical ones and refuses the bad ones") {
  for (auto& one : test::client_samples()) {
    CAPTURE(one.text.substr(0, 300));
    CHECK(refusal(one).empty());
  }
  for (auto& one : test::refused_client_samples()) {
    CAPTURE(one.text.substr(0, 300));
    CHECK_FALSE(refusal(one).empty());
  }
}
