#include "client/codec/frames.hpp"
#include "client/codec/server_glance.hpp"
#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/server_codec.hpp"
#include "protocol/media/wav.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <vector>

using namespace parley::client;
using namespace parley::protocol;

namespace {

const std::vector<float> second(16'000, 0.25f);

/// Checks that both readers see the same.
void check_glance(const std::string& frame, const server_message& message) {
  const auto got = glance(frame).value();
  CHECK(got.type == message.type);
  CHECK(got.text == !message.text.empty());
  CHECK(got.audio_samples == message.audio.size());
  CHECK(got.answers_unit == message.answers_unit);
  CHECK(got.end_of_turn == message.end_of_turn);
  CHECK(got.input == message.input);
  CHECK(got.dropped_units == message.dropped_units);
  CHECK(got.reason == message.reason);
  CHECK(got.error_code == message.error_code);
}

server_message seen(const server_event& event, dialect spoken = dialect::current) {
  const auto frame = encode(event, {.spoken = spoken, .session_id = "sess_1"});
  auto message = read_server_message(frame).value();
  check_glance(frame, message);
  return message;
}

} // namespace

TEST_CASE("what a client sends is what the server reads") {
  SECTION("session.init") {
    const std::string voice = write_wav(second, 16'000);
    const std::string frame = encode_init({.spoken = dialect::current,
                                           .system_prompt = "Be \"brief\"\n",
                                           .force_listen_count = 0,
                                           .max_speak_tokens = 6,
                                           .greedy = true,
                                           .seed = 9,
                                           .voice = voice,
                                           .resume = true});
    const auto event = peek(frame).value();
    CHECK(event.type == client_event_type::session_init);
    const auto init = decode_session_init(event, mode::audio).value();
    CHECK(init.system_prompt == "Be \"brief\"\n");
    CHECK(init.config.force_listen_count == 0);
    CHECK(init.config.max_new_speak_tokens_per_chunk == 6);
    CHECK(init.config.sampling.greedy);
    CHECK(init.seed == 9u);
    CHECK(init.resume);
    CHECK(init.voice->size() == 16'000);
  }
  SECTION("session.init with nothing to say") {
    const std::string frame = encode_init({});
    const auto init = decode_session_init(peek(frame).value(), mode::audio).value();
    CHECK_FALSE(init.has_system_prompt);
    CHECK_FALSE(init.resume);
    CHECK_FALSE(init.seed);
    CHECK(init.config.force_listen_count == parley::conversation::duplex_options{}.force_listen_count);
    CHECK_FALSE(init.voice);
  }
  SECTION("session.update") {
    const std::string frame = encode_init({.spoken = dialect::legacy});
    const auto event = peek(frame).value();
    CHECK(event.type == client_event_type::session_update);
    CHECK_FALSE(decode_session_update(event, mode::audio).value().system_prompt.empty());
  }
  SECTION("appends of both dialects") {
    const auto spoken = GENERATE(dialect::current, dialect::legacy);
    const bool force = GENERATE(false, true);
    const std::string frame = encode_append(spoken, second, force);
    const auto append = decode_append(peek(frame).value(), mode::audio, 4000).value();
    CHECK(*append.samples == second);
    CHECK(append.force_listen == force);
  }
  SECTION("an append with a picture") {
    const auto spoken = GENERATE(dialect::current, dialect::legacy);
    const std::string picture = "\xff\xd8\xff no more than its first bytes are looked at here";
    const std::string frame = encode_append(spoken, second, true, picture);
    const auto append = decode_append(peek(frame).value(), mode::audio, 4000).value(); // audio: no pictures
    CHECK(append.samples->size() == second.size());
    CHECK(append.force_listen);
    CHECK(frame.find(R"("video_frames":["/9j/)") != std::string::npos);
  }
  SECTION("chat") {
    const std::string frame = encode_chat(
        {.prompt = "Hi\\\"\x01", .system = "S", .max_new_tokens = 5, .greedy = true, .seed = 2, .streaming = false});
    const auto asked = decode_chat_append(peek(frame).value()).value();
    REQUIRE(asked.messages.size() == 2);
    CHECK(std::get<text_item>(asked.messages[1].content.at(0)).text == "Hi\\\"\x01");
    CHECK(asked.max_new_tokens == 5);
    CHECK(asked.do_sample == false);
    CHECK(asked.seed == 2u);
    CHECK_FALSE(asked.streaming);
    CHECK_FALSE(asked.tts);
  }
  SECTION("chat that is to be spoken") {
    const std::string frame = encode_chat({.prompt = "Hi", .tts = true});
    CHECK(decode_chat_append(peek(frame).value()).value().tts);
  }
  SECTION("chat with the server's own settings") {
    const std::string frame = encode_chat({.prompt = "Hi"});
    const auto asked = decode_chat_append(peek(frame).value()).value();
    CHECK(asked.messages.size() == 1);
    CHECK(asked.max_new_tokens == 256);
    CHECK_FALSE(asked.do_sample);
    CHECK(asked.streaming);
  }
  SECTION("session.close") {
    const std::string frame = encode_close("turn_done");
    CHECK(decode_close(peek(frame).value()).reason == "turn_done");
  }
}

TEST_CASE("what a server sends is understood in both dialects") {
  CHECK(seen(session_queued{{3, 12.5, "ticket_1", 7}}).position == 3);
  CHECK(seen(session_queue_update{{3, 12.5, "ticket_1", 7}}).queue_length == 7);
  CHECK(seen(session_queue_update{{3, 12.5, "ticket_1", 7}}).estimated_wait_s == 12.5);
  CHECK(seen(session_queue_done{}).type == server_event_type::queue_done);
  CHECK(seen(session_go_away{"timeout", 30'000}).time_left_ms == 30'000);
  CHECK(seen(error_event{error_code::not_ready, "wait"}).error_code == "not_ready");
  CHECK(seen(error_event{error_code::not_ready, "wait"}).error_message == "wait");

  session_created created;
  created.prompt_length = 12;
  CHECK(seen(created).session_id == "sess_1");
  CHECK(seen(created).prompt_length == 12);
  CHECK(seen(session_closed{.reason = "timeout", .total = {}}).reason == "timeout");

  output_delta listen;
  listen.input_id = "input_12";
  listen.measured.kv_cache_length = 40;
  listen.measured.wall_clock_ms = 3;
  listen.measured.dropped_chunks = 2;
  CHECK(seen(listen).type == server_event_type::listen);
  CHECK(seen(listen).answers_unit);
  CHECK(seen(listen).input == 12);
  CHECK(seen(listen).kv_cache_length == 40);
  CHECK(seen(listen).dropped_units == 2);
  CHECK(seen(listen, dialect::legacy).type == server_event_type::listen);
  CHECK(seen(listen, dialect::legacy).answers_unit);
  CHECK(seen(listen, dialect::legacy).kv_cache_length == 40);

  output_delta spoken;
  spoken.kind = output_kind::text;
  spoken.text = "word";
  spoken.measured.kv_cache_length = 40;
  CHECK(seen(spoken).type == server_event_type::spoken);
  CHECK(seen(spoken).text == "word");
  CHECK_FALSE(seen(spoken).answers_unit);
  spoken.kind = output_kind::audio;
  for (const std::size_t samples : {1u, 2u, 3u, 240u}) {
    spoken.audio = std::make_shared<const std::vector<float>>(samples, 0.5f);
    CHECK(seen(spoken).audio == *spoken.audio);
    CHECK(seen(spoken, dialect::legacy).audio == *spoken.audio);
  }
  const auto escaped = read_server_message(R"({"type":"response.output.delta","kind":"audio","audio":"\/\/\/\/Pg=="})");
  REQUIRE(escaped->audio.size() == 1);
  for (const auto* sound : {"AAAA", "no base64", "AAAAAAA="})
    CHECK(
        read_server_message(std::string(R"({"type":"response.output.delta","kind":"audio","audio":")") + sound + "\"}")
            .value()
            .audio.empty());
  spoken.end_of_turn = true;
  CHECK(seen(spoken, dialect::legacy).end_of_turn);

  response_done done;
  done.text = "whole";
  done.reason = "length";
  CHECK(seen(done).type == server_event_type::response_done);
  CHECK(seen(done).reason == "length");
  CHECK_FALSE(seen(done).answers_unit);
}

TEST_CASE("a glance tells what a client needs to come back") {
  session_created created;
  created.resume_token = "resume_1";
  created.resume_seconds = 30;
  const encode_context context{.spoken = dialect::current, .session_id = "sess_1"};
  const auto begun = glance(encode(created, context)).value();
  CHECK(begun.session_id == "sess_1");
  CHECK(begun.resume_token == "resume_1");
  CHECK(begun.resume_seconds == 30);

  session_resumed resumed;
  resumed.resume_token = "resume_2";
  resumed.inputs = 12;
  resumed.resent = 3;
  const auto back = glance(encode(resumed, context)).value();
  CHECK(back.type == server_event_type::resumed);
  CHECK(back.resume_token == "resume_2");
  CHECK(back.inputs == 12);
  CHECK(back.resent == 3);

  CHECK(glance(R"({"type":"session.go_away","reason":"server_restart","retry_after_ms":1500})")->retry_after_ms ==
        1500);
  CHECK(glance(R"({"type":"response.done","event_id":17})")->event_id == 17);
  CHECK(glance(R"({"type":"response.done","event_id":"17"})")->event_id == 0);
  CHECK(glance(R"({"type":"session.created","resume_token":7,"resume_seconds":"x"})")->resume_token.empty());
}

TEST_CASE("foreign and broken frames do no harm") {
  CHECK(read_server_message(R"({"type":"session.updated","x":1})")->type == server_event_type::other);
  CHECK(read_server_message(
            R"({"type":"x","session_id":7,"position":"x","metrics":[],"error":"e","audio":3,"input_id":"x"})")
            ->type == server_event_type::other);
  CHECK_FALSE(read_server_message(R"({"type":5})"));
  CHECK_FALSE(read_server_message("[]"));
  CHECK_FALSE(read_server_message("{}"));
  CHECK_FALSE(read_server_message("{"));
  CHECK_FALSE(read_server_message("\xFF"));
}

TEST_CASE("a glance at what is no event sees nothing") {
  for (const auto* frame : {"", "hello", "[]", "{}", R"({"type":3})", R"({"type":"error")"}) CHECK_FALSE(glance(frame));
  CHECK(glance(R"({"type":"error","error":"oops"})")->error_code.empty());
  CHECK(glance(R"({"type":"something.new"})")->type == server_event_type::other);
}
