#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

// docs/protocol.md 3.5 and the chat columns of 8, through the machine's interface.
namespace parley::protocol::test {

namespace {

driver::options chat() {
  return {.mode = "chat"};
}

const submit_turn& submitted(const driver& d) {
  return std::get<submit_turn>(d.last.back());
}

} // namespace

TEST_CASE("a chat turn streams and ends") {
  driver d(chat());
  d.to_active();
  const auto& created = said_event<session_created>(d.last);
  CHECK(created.turn_based);
  CHECK_FALSE(created.prompt_length);
  CHECK(d.frame(chat_frame("Reply with exactly: test")) == "turn:1");
  CHECK(d.turn(said(1, "te")) == "text(te)");
  const std::string response = said_event<output_delta>(d.last).response_id;
  CHECK(said_event<output_delta>(d.last).input_id == "input_1");
  CHECK_FALSE(said_event<output_delta>(d.last).chunk_index);
  CHECK(d.turn(said(1, "st")) == "text(st)");
  CHECK(said_event<output_delta>(d.last).response_id == response);
  CHECK(d.turn({0, 1, "", std::make_shared<const std::vector<float>>(480)}) == "audio(480)");
  d.now += 90ms;
  conversation::chat_done over = turn_over(1, "test");
  over.audio = std::make_shared<const std::vector<float>>(480);
  CHECK(d.done(over) == "done:turn_end(test)");
  const auto& done = said_event<response_done>(d.last);
  CHECK(done.response_id == response);
  CHECK(done.input_id == "input_1");
  CHECK_FALSE(done.audio); // the sound was already streamed
  CHECK(done.measured.wall_clock_ms == 90.0);
  CHECK(done.used == small_usage());

  CHECK(d.frame(chat_frame("again")) == "turn:2");
  CHECK(d.done(turn_over(2, "ok", conversation::finish_reason::length)) == "done:length(ok)");
  CHECK(said_event<response_done>(d.last).response_id != response);
  CHECK(d.frame(close_frame("turn_done")) == "closed:turn_done close:1000 close_engine");
  CHECK(said_event<session_closed>(d.last).total->input_audio == 20);
}

TEST_CASE("calls in pieces have one id each, which the whole call repeats") {
  driver d(chat());
  d.to_active();
  d.frame(chat_frame("hi", R"(,"tool_call_deltas":true,"tools":[{"type":"function","name":"f"}])"));
  CHECK(submitted(d).call_pieces);
  const auto pieces = [](std::vector<conversation::call_piece> of) {
    conversation::chat_delta report{0, 1, "", nullptr};
    report.calls = std::move(of);
    return report;
  };
  CHECK(d.turn(pieces({{0, "f", ""}})) == "part:f");
  const auto id = said_event<response_tool_call_delta>(d.last).part.id;
  CHECK(id.starts_with("call_"));
  CHECK(d.turn(pieces({{0, "", "{"}, {0, "", "}"}, {1, "g", "{}"}})) == "part:{ part:} part:g{}");
  CHECK(said_event<response_tool_call_delta>(d.last).part.id == id);
  const auto second = said_event<response_tool_call_delta>(d.last, 2).part.id;
  CHECK(second != id);
  conversation::chat_done over = turn_over(1, "");
  over.calls = {{"", "f", "{}"}, {"", "g", "{}"}, {"", "h", "{}"}};
  CHECK(d.done(over) == "call:f call:g call:h done:turn_end()");
  CHECK(said_event<response_tool_call>(d.last).call.id == id);
  CHECK(said_event<response_tool_call>(d.last, 1).call.id == second);
  CHECK(said_event<response_tool_call>(d.last, 2).call.id.starts_with("call_"));
}

TEST_CASE("tools of the init are those of the turns that name none") {
  driver d(chat());
  d.to_connected();
  CHECK(d.frame(init_frame(R"({"tools":[{"type":"function","name":"f"}],"tool_choice":"required"})")) == "open");
  d.opened(0);
  const auto next = [&](std::string_view extra) {
    d.frame(chat_frame("hi", extra));
    const auto request = submitted(d);
    d.done(turn_over(submitted(d).turn, "ok"));
    return request;
  };
  const auto usual = next("");
  REQUIRE(usual.tools.size() == 1);
  CHECK(usual.tools[0].name == "f");
  CHECK(usual.tool_required);
  CHECK(next(R"(,"tool_choice":"none")").tools.empty());
  const auto own = next(R"(,"tools":[{"type":"function","name":"g"}])");
  REQUIRE(own.tools.size() == 1);
  CHECK(own.tools[0].name == "g");
  CHECK_FALSE(own.tool_required);
}

TEST_CASE("tools of an init are checked in every mode") {
  driver d(chat());
  d.to_connected();
  CHECK(d.frame(init_frame(R"({"tools":{}})")) == "error:invalid_payload");
  CHECK(d.frame(init_frame(R"({"tool_choice":"required"})")) == "error:invalid_payload");
  driver voice;
  voice.to_connected();
  CHECK(voice.frame(init_frame(R"({"tools":{}})")) == "error:invalid_payload");
}

TEST_CASE("how likely the tokens were is said with their text, or at the end") {
  const std::vector<token_score> one{{{"a", -1}, {}}}, two{{{"b", -2}, {}}};
  const auto streaming = GENERATE(true, false);
  driver d(chat());
  d.to_active();
  d.frame(chat_frame("hi", streaming ? R"(,"logprobs":0)" : R"(,"logprobs":0,"streaming":false)"));
  CHECK(submitted(d).scored == 0);
  conversation::chat_delta report{0, 1, "a", nullptr};
  report.scores = one;
  d.turn(report);
  if (streaming) CHECK(said_event<output_delta>(d.last).scores.size() == 1);
  conversation::chat_done over = turn_over(1, "a");
  over.scores = two;
  d.done(over);
  const auto& scores = said_event<response_done>(d.last).scores;
  REQUIRE(scores.size() == (streaming ? 1 : 2));
  CHECK(scores.back().chosen.bytes == "b");
}

TEST_CASE("without streaming there are no deltas and the sound comes at the end") {
  driver d(chat());
  d.to_active();
  d.frame(chat_frame("hi", R"(,"streaming":false,"tts":{"enabled":true})"));
  CHECK(submitted(d).tts);
  CHECK(d.turn(said(1, "hello")) == "");
  CHECK(d.turn({0, 1, "", std::make_shared<const std::vector<float>>(480)}) == "");
  conversation::chat_done over = turn_over(1, "hello");
  over.audio = std::make_shared<const std::vector<float>>(480);
  CHECK(d.done(over) == "done:turn_end(hello)");
  CHECK(said_event<response_done>(d.last).audio->size() == 480);
}

TEST_CASE("four turns wait, the fifth is refused") {
  driver d(chat());
  d.to_active();
  CHECK(d.frame(chat_frame()) == "turn:1");
  d.now += 20ms;
  for (int i = 0; i < 4; ++i) CHECK(d.frame(chat_frame()) == "");
  CHECK(d.frame(chat_frame()) == "error:invalid_event");
  d.now += 100ms;
  CHECK(d.done(turn_over(1, "a")) == "done:turn_end(a) turn:2");
  CHECK(d.frame(chat_frame()) == "");
  d.now += 30ms;
  CHECK(d.done(turn_over(2, "b")) == "done:turn_end(b) turn:3");
  CHECK(said_event<response_done>(d.last).measured.queue_ms == 100.0);
  CHECK(said_event<response_done>(d.last).measured.wall_clock_ms == 30.0);
  CHECK(said_event<response_done>(d.last).input_id == "input_2");
  d.done(turn_over(3, ""));
  d.done(turn_over(4, ""));
  d.done(turn_over(5, ""));
  CHECK(d.done(turn_over(6, "")) == "done:turn_end()");
  CHECK(said_event<response_done>(d.last).input_id == "input_7"); // the refused append counts, too
}

TEST_CASE("large turns wait in small numbers") {
  driver d(chat());
  d.to_active();
  const auto large = R"({"type":"input.append","padding":")" + std::string(50u << 20, 'x') +
                     R"(","input":{"messages":[{"role":"user","content":"x"}]}})";
  d.frame(large); // runs
  for (int i = 0; i < 2; ++i) CHECK(d.frame(large).empty());
  CHECK(d.frame(large) == "error:invalid_event");
  CHECK(d.frame(chat_frame()).empty()); // a small one still fits
  d.done(turn_over(1, ""));
  CHECK(d.frame(large).empty());
}

TEST_CASE("the init's system prompt stands in front of a conversation without one") {
  driver d(chat());
  d.to_connected();
  d.frame(init_frame(R"({"system_prompt":"Be brief."})"));
  d.opened(0);
  d.frame(chat_frame());
  REQUIRE(submitted(d).messages.size() == 2);
  CHECK(submitted(d).messages[0].from == role::system);
  CHECK(std::get<text_item>(submitted(d).messages[0].content[0]).text == "Be brief.");
  d.done(turn_over(1, ""));
  d.frame(
      R"({"type":"input.append","input":{"messages":[{"role":"system","content":"Own."},{"role":"user","content":"x"}]}})");
  CHECK(submitted(d).messages.size() == 2);

  driver plain(chat());
  plain.to_active();
  plain.frame(chat_frame());
  CHECK(submitted(plain).messages.size() == 1);
}

TEST_CASE("a prompt that does not fit is refused, the session goes on") {
  driver d(chat());
  d.to_active();
  d.frame(chat_frame());
  d.frame(chat_frame());
  CHECK(d.failed(failure(1, conversation::failure_kind::context_full)) == "error:invalid_payload turn:2");
  CHECK(d.failed(failure(2, conversation::failure_kind::invalid)) == "error:invalid_payload");
  CHECK(d.frame(chat_frame()) == "turn:3");
}

TEST_CASE("a failed turn ends with an error; three in a row end the session") {
  driver d(chat());
  d.to_active();
  d.frame(chat_frame());
  d.turn(said(1, "half"));
  CHECK(d.failed(failure(1)) == "error:inference_error done:error(half)");
  d.frame(chat_frame());
  CHECK(d.failed(failure(2)) == "error:inference_error done:error()");
  d.frame(chat_frame());
  d.frame(chat_frame());
  CHECK(d.failed(failure(3)) == "error:inference_error done:error() closed:backend_error close:1011 close_engine");
}

TEST_CASE("a turn that takes too long is given up, and the next one waits for its real end") {
  driver d(chat());
  d.to_active();
  d.frame(chat_frame());
  d.turn(said(1, "so far"));
  CHECK(d.wait(119'999ms) == "");
  d.frame(chat_frame());
  CHECK(d.wait(1ms) == "error:inference_error cancel_turn done:error(so far)");
  CHECK(d.turn(said(1, "late")) == "");
  CHECK(d.done(turn_over(1, "so far late", conversation::finish_reason::cancelled)) == "turn:2");
  CHECK(d.wait(119'000ms) == "");
  CHECK(d.done(turn_over(2, "ok")) == "done:turn_end(ok)");
}

TEST_CASE("an engine that hangs is left after three turns") {
  driver d(chat());
  d.to_active();
  for (int i = 0; i < 3; ++i) d.frame(chat_frame());
  CHECK(d.wait(120s) == "error:inference_error cancel_turn done:error()");
  CHECK(d.wait(120s) == "error:inference_error done:error()"); // the append never reached the engine
  CHECK(d.wait(120s) == "error:inference_error done:error() closed:backend_error close:1011 close_engine");
}

TEST_CASE("session.close while generating says cancelled first") {
  driver d(chat());
  d.to_active();
  d.frame(chat_frame());
  d.frame(chat_frame());
  d.turn(said(1, "I was"));
  CHECK(d.frame(close_frame("turn_done")) == "done:cancelled(I was) closed:turn_done close:1000 close_engine");
  CHECK(d.turn(said(1, " saying")) == "");
  CHECK(d.done(turn_over(1, "I was saying")) == "");
  CHECK(d.engine_closed() == "release");
}

TEST_CASE("the idle limit counts from the last append and the last answer") {
  driver d(chat());
  d.to_active();
  CHECK(d.wait(50s) == "");
  CHECK(d.frame(R"({"type":"input.append","input":{}})") == "error:missing_field"); // still counts as an append
  CHECK(d.wait(50s) == "");
  d.frame(chat_frame());
  CHECK(d.wait(100s) == "");
  d.done(turn_over(1, ""));
  CHECK(d.wait(59'999ms) == "");
  CHECK(d.frame(R"({"type":"ping"})") == "error:unknown_event"); // not an append
  CHECK(d.wait(1ms) == "closed:timeout close:1000 close_engine");
}

TEST_CASE("what the model lacks is refused") {
  driver d({.mode = "chat", .able = {false, false, false}});
  d.to_active();
  const auto item = [](std::string_view type, std::string_view data) {
    return R"({"type":"input.append","input":{"messages":[{"role":"user","content":[{"type":")" + std::string(type) +
           R"(","data":")" + std::string(data) + R"("}]}]}})";
  };
  CHECK(d.frame(item("image", tiny_jpeg_base64())) == "error:invalid_payload");
  CHECK(d.frame(item("video", tiny_jpeg_base64())) == "error:invalid_payload");
  CHECK(d.frame(item("audio", std::string(21'332, 'A') + "AA==")) == "error:invalid_payload");
  CHECK(d.frame(chat_frame("hi", R"(,"tts":{"enabled":true})")) == "turn:1");
  CHECK_FALSE(submitted(d).tts);

  driver able(chat());
  able.to_active();
  CHECK(able.frame(item("image", tiny_jpeg_base64())) == "turn:1");
}

TEST_CASE("a turn whose worker is lost is asked for again, and goes on where it was") {
  driver d(chat());
  d.to_active();
  d.frame(chat_frame());
  d.turn(said(1, "one "));
  CHECK(d.worker_lost() == "enqueue:head");
  CHECK(d.grant() == "restore");
  CHECK(d.restored() == "turn:1");
  CHECK(d.turn(said(1, "two")) == "text(two)");
  CHECK(d.done(turn_over(1, "one two")) == "done:turn_end(one two)");
}

} // namespace parley::protocol::test
