#include "protocol/codec/client_codec.hpp"

#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

using namespace parley::protocol;

namespace {

frame_fault fault_of(std::string_view frame) {
  auto from = peek(frame);
  REQUIRE_FALSE(from);
  return from.error();
}

std::string close_reason(std::string_view frame) {
  auto from = peek(frame);
  REQUIRE(from);
  REQUIRE(from->type == client_event_type::session_close);
  return decode_close(*from).reason;
}

} // namespace

TEST_CASE("peek: the types of client events") {
  const std::vector<std::pair<std::string, client_event_type>> rows{
      {"session.init", client_event_type::session_init},
      {"session.update", client_event_type::session_update},
      {"input.append", client_event_type::input_append},
      {"input_audio_buffer.append", client_event_type::input_audio_buffer_append},
      {"session.close", client_event_type::session_close},
      {"session.Close", client_event_type::unknown},
      {"", client_event_type::unknown},
      {"conversation.item.create", client_event_type::unknown},
      {"response.create", client_event_type::unknown},
      {"response.cancel", client_event_type::unknown},
      {"ping", client_event_type::unknown},
      {"session.init ", client_event_type::unknown},
  };
  for (auto& [name, type] : rows) {
    auto frame = R"({"x":[1,{"type":"no"}],"type":")" + name + "\"}";
    auto from = peek(frame);
    REQUIRE(from);
    CHECK(from->type == type);
    CHECK(from->type_name == name);
  }
  CHECK(peek(R"({"type":"session\u002einit"})")->type == client_event_type::session_init);
  CHECK(peek(R"({"ty\u0070e":"session.close"})")->type == client_event_type::session_close);
  CHECK(peek(R"({"type":"session.init\u0000"})")->type == client_event_type::unknown);
  CHECK(peek(R"({"type":"foo","type":"session.close"})")->type == client_event_type::session_close);
  CHECK(peek(R"({"type":5,"type":"session.close"})")->type == client_event_type::session_close);
}

TEST_CASE("peek: a long type is cut between characters") {
  auto plain = R"({"type":")" + std::string(1000, 'x') + "\"}";
  CHECK(peek(plain)->type_name == std::string(64, 'x'));
  auto odd = R"({"type":"x)" + std::string(62, 'y') + "\xF0\x9F\x98\x80\"}";
  CHECK(peek(odd)->type_name == "x" + std::string(62, 'y'));
}

TEST_CASE("peek: text that is not JSON is for closing with 1003") {
  for (std::string frame :
       {"", "hello", "{", R"({"type":"session.close")", R"({"type":"session.close"}})",
        R"({"type":"input.append","input":{"audio":"AAAA"},})", R"({"type":"session.close","x":01})",
        R"({"type":"session.close","x":"\x"})", R"({"type":"session.close","x":tru})"}) {
    CAPTURE(frame);
    CHECK(fault_of(frame).not_json);
  }
  CHECK(fault_of(R"({"a" 1})").reason.message == "not JSON at byte 5");
}

TEST_CASE("peek: JSON that is no event") {
  struct row {
    std::string frame;
    error_code code;
    std::string message;
  };
  std::string deep = R"({"type":"session.close","x":)" + std::string(32, '[') + std::string(32, ']') + "}";
  for (auto& [frame, code, message] : std::vector<row>{
           {"[]", error_code::invalid_payload, "the event is not a JSON object"},
           {"\"session.close\"", error_code::invalid_payload, "the event is not a JSON object"},
           {"null", error_code::invalid_payload, "the event is not a JSON object"},
           {"{}", error_code::missing_field, "type: required"},
           {R"({"Type":"session.close"})", error_code::missing_field, "type: required"},
           {R"({"x":{"type":"session.close"}})", error_code::missing_field, "type: required"},
           {R"({"type":null})", error_code::invalid_payload, "type: not a string"},
           {R"({"type":1})", error_code::invalid_payload, "type: not a string"},
           {R"({"type":"session.close","type":{}})", error_code::invalid_payload, "type: not a string"},
           {deep, error_code::invalid_payload, "the JSON is nested deeper than 32"},
       }) {
    CAPTURE(frame);
    auto fault = fault_of(frame);
    CHECK_FALSE(fault.not_json);
    CHECK(fault.reason.code == code);
    CHECK(fault.reason.message == message);
  }
  auto deepest = R"({"type":"session.close","x":)" + std::string(31, '[') + std::string(31, ']') + "}";
  CHECK(peek(deepest));
}

TEST_CASE("session.close: the client's reason if it is one") {
  CHECK(close_reason(R"({"type":"session.close"})") == "user_stop");
  CHECK(close_reason(R"({"type":"session.close","reason":"turn_done"})") == "turn_done");
  CHECK(close_reason(R"({"type":"session.close","reason":"a9_"})") == "a9_");
  CHECK(close_reason(R"({"type":"session.close","reason":"turn\u005fdone"})") == "turn_done");
  CHECK(close_reason(R"({"type":"session.close","reason":")" + std::string(64, 'r') + "\"}") == std::string(64, 'r'));
  for (std::string reason : {"null", "\"\"", "\"User\"", "\"a b\"", "\"a-b\"", "5", "{}", "[\"x\"]", "true",
                             "\"a\\u0000\"", "\"\xC3\xA9\""}) {
    CAPTURE(reason);
    CHECK(close_reason(R"({"type":"session.close","reason":)" + reason + "}") == "user_stop");
  }
  CHECK(close_reason(R"({"type":"session.close","reason":")" + std::string(65, 'r') + "\"}") == "user_stop");
}
