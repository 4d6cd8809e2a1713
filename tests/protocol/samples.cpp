#include "tests/protocol/samples.hpp"

#include "protocol/codec/server_codec.hpp"
#include "tests/protocol/wire_material.hpp"

#include <array>
#include <limits>

namespace parley::protocol::test {
namespace {

constexpr std::string_view current_server = "currentServerEvent";
constexpr std::string_view legacy_server = "legacyServerEvent";
constexpr std::string_view duplex_client = "currentDuplexClientEvent";
constexpr std::string_view chat_client = "currentChatClientEvent";
constexpr std::string_view legacy_client = "legacyClientEvent";

constexpr usage some_usage{3, 2, 64, 5, 7};
constexpr metrics all_metrics{"libtorch", 1024, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10, 11, 2, 128, 14, 15, 16};

std::vector<server_event> common_events() {
  queue_position place{2, 19.5, "ticket_0123456789ab", 3};
  std::vector<server_event> out{session_queued{place}, session_queue_update{place}, session_queue_done{}};
  for (std::size_t i = 0; i < error_table.size(); ++i)
    out.emplace_back(error_event{static_cast<error_code>(i), "a \"message\"\n\xFF"});
  for (auto reason : {"timeout", "context_full", "quota_exceeded", "server_shutdown"})
    out.emplace_back(session_go_away{reason, 30'000});
  return out;
}

std::vector<session_created> created_events() {
  session_created bare;
  session_created full;
  full.prompt_length = 256;
  full.turn_based = true;
  full.measured = all_metrics;
  full.total = some_usage;
  full.recording_id = "sess_recording";
  return {bare, full};
}

std::vector<token_score> some_scores() {
  return {{{"Hi", -0.25}, {{"Hi", -0.25}, {"\xF0\x9F", -2}}},
          {{"\xF0\x9F", -std::numeric_limits<double>::infinity()}, {}}};
}

std::vector<output_delta> deltas() {
  output_delta first;
  first.response_id = "resp_0123456789ab";
  first.input_id = "input_4";
  first.chunk_index = 3;
  first.chunk_usage = some_usage;
  first.total = some_usage;
  first.measured = all_metrics;
  output_delta later;
  later.turn_id = "turn_12";
  later.response_id = "resp_0123456789ab";
  later.end_of_turn = true;
  later.measured.kv_cache_length = 8192;
  output_delta scored = first;
  scored.scores = some_scores();

  std::vector<output_delta> out;
  for (auto kind : {output_kind::listen, output_kind::text, output_kind::audio})
    for (auto delta : {first, later, scored}) {
      delta.kind = kind;
      if (kind == output_kind::listen) delta.end_of_turn = false;
      out.push_back(delta);
      if (kind != output_kind::listen) delta.text = "Hello \xF0\x9F\x98\x80";
      if (kind == output_kind::audio) delta.audio = std::make_shared<const std::vector<float>>(24'000, 0.25f);
      out.push_back(delta);
    }
  return out;
}

std::vector<response_done> done_events() {
  std::vector<response_done> out;
  for (auto reason : {"turn_end", "length", "cancelled", "error"})
    out.push_back({"resp_1", "input_1", "text", nullptr, reason, {}, {}});
  out.push_back({"resp_1", "input_1", "text", nullptr, "unit_end", {}, some_usage, "turn_1"});
  out.push_back({"resp_1", "input_1", "", std::make_shared<const std::vector<float>>(5, 0.5f), "turn_end", all_metrics,
                 some_usage});
  out.back().scores = some_scores();
  return out;
}

struct listing {
  std::string_view entry;
  encode_context context;
  std::vector<sample>& out;

  void add(const server_event& event) { out.push_back({entry, encode(event, context)}); }

  template<class Events>
  void add_all(const Events& events) {
    for (auto& event : events) add(event);
  }
};

} // namespace

std::vector<sample> server_samples() {
  std::vector<sample> out;
  for (auto entry : {current_server, legacy_server}) {
    listing undecided{entry, {}, out};
    undecided.add_all(common_events());
    for (auto reason : {"stopped", "timeout", "server_shutdown", "error"})
      undecided.add(session_closed{reason, some_usage});
  }
  listing current{current_server, {dialect::current, "sess_0123456789abcdefghij", false, 1'700'000'000.123456}, out};
  current.add_all(common_events());
  current.add_all(created_events());
  current.add(session_go_away{"server_restart", 0, 1000});
  current.add(input_transcript{1200, 2600, "What time is it?"});
  current.add(input_transcript{0, 31'000, "", "too_long"});
  session_created lasting;
  lasting.resume_token = "resume_abcdefghijklmnopqrstuvwxyz234567";
  lasting.resume_seconds = 30;
  current.add(lasting);
  current.add(session_resumed{"resume_abcdefghijklmnopqrstuvwxyz234567", 12, 3});
  current.add_all(deltas());
  current.add(response_tool_call{"resp_1", "input_1", {"call_1", "f", "{\"a\": 1}"}});
  current.add(response_tool_call_delta{"resp_1", "input_1", {"call_1", "f", ""}});
  current.add(response_tool_call_delta{"resp_1", "", {"call_1", "", "{\"a\""}});
  current.add(duplex_call_begin{"call_1", 3, 1200, 2600});
  current.add(duplex_call_delta{"call_1", 3, "<tool_call>\n{}"});
  current.add(duplex_call_done{{"call_1", "f", "{\"a\": 1}"}, 3, "<tool_call>\n{}"});
  current.add(duplex_call_abort{"call_1", "timeout"});
  session_created judged;
  judged.granted = {"tools"};
  judged.refused = {{"config.beams", "is not known to this server"}};
  current.add(judged);
  current.add_all(done_events());
  for (auto reason : {"user_stop", "turn_done", "timeout", "context_full", "server_shutdown", "backend_error"}) {
    current.add(session_closed{reason, some_usage});
    current.add(session_closed{reason, {}});
  }
  listing numbered{
      current_server, {dialect::current, "sess_0123456789abcdefghij", false, 1'700'000'000.123456, 17}, out};
  numbered.add(lasting);
  numbered.add_all(deltas());
  numbered.add_all(done_events());
  listing legacy{legacy_server, {dialect::legacy, "rt_1714200000000", false, 1'700'000'000.123456}, out};
  legacy.add_all(common_events());
  legacy.add_all(created_events());
  legacy.add_all(deltas());
  for (auto reason : {"stopped", "timeout", "context_full", "server_shutdown", "error"})
    legacy.add(session_closed{reason, some_usage});
  return out;
}

std::vector<sample> client_samples() {
  std::vector<sample> out;
  auto add = [&](std::string_view entry, const dom& event) { out.push_back({entry, event.dump()}); };
  auto second = sound(16'000);
  dom image = jpeg();
  dom hello{{"role", "user"}, {"content", "Hello"}};

  for (auto entry : {duplex_client, chat_client, legacy_client}) {
    add(entry, {{"type", "session.close"}});
    add(entry, {{"type", "session.close"}, {"reason", "user_stop"}});
    add(entry, {{"type", "session.close"}, {"reason", nullptr}});
  }
  for (auto entry : {duplex_client, chat_client}) {
    add(entry, {{"type", "session.init"}, {"payload", dom::object()}});
    add(entry, {{"type", "session.init"}, {"payload", {{"resume", true}}}});
    add(entry,
        {{"type", "session.init"}, {"payload", {{"system_prompt", "p"}, {"mode", "full_duplex"}, {"future", 1}}}});
  }
  add(duplex_client, {{"type", "session.init"},
                      {"payload",
                       {{"instructions", "p"},
                        {"max_slice_nums", 9},
                        {"voice", {{"ref_audio_base64", wav_voice()}, {"tts_ref_audio_base64", sound(4000)}}},
                        {"config",
                         {{"length_penalty", 1.1},
                          {"force_listen_count", 0},
                          {"max_new_speak_tokens_per_chunk", 100},
                          {"temperature", 0},
                          {"top_k", 0},
                          {"top_p", 1},
                          {"decode_mode", "greedy"},
                          {"text_repetition_penalty", 1},
                          {"text_repetition_window_size", 1},
                          {"listen_prob_scale", 0},
                          {"listen_top_k", nullptr},
                          {"tts_temperature", 2},
                          {"generate_audio", false},
                          {"seed", -1},
                          {"unit_responses", true},
                          {"listen_at_turn_end", false},
                          {"transcribe_input", true},
                          {"chunk_ms", 1000},
                          {"sample_rate", 16000},
                          {"max_slice_nums", 1},
                          {"sliding_window_mode", "context"}}}}}});
  add(duplex_client, {{"type", "session.init"},
                      {"payload",
                       {{"system_prompt", nullptr},
                        {"instructions", nullptr},
                        {"config", nullptr},
                        {"max_slice_nums", nullptr},
                        {"voice", nullptr}}}});
  add(duplex_client, {{"type", "input.append"}, {"input", {{"audio", second}}}});
  add(duplex_client, {{"type", "input.append"}, {"input", {{"audio", sound(1)}}}});
  add(duplex_client, {{"type", "input.append"}, {"input", {{"audio", sound(160'000)}}}});
  add(duplex_client, {{"type", "input.append"},
                      {"input",
                       {{"audio", second},
                        {"video_frames", {image, image, image, image}},
                        {"force_listen", true},
                        {"max_slice_nums", 1},
                        {"hints", {{"force_listen", false}, {"max_slice_nums", 9}}}}}});
  add(duplex_client, {{"type", "input.append"},
                      {"input",
                       {{"audio", second},
                        {"video_frames", nullptr},
                        {"force_listen", nullptr},
                        {"max_slice_nums", nullptr},
                        {"context", nullptr},
                        {"hints", nullptr}}}});
  add(duplex_client,
      {{"type", "session.init"},
       {"payload",
        {{"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}},
         {"tool_choice", "auto"},
         {"config",
          {{"generation", {{"temperature", 0.5}, {"top_p", 0.5}, {"top_k", 3}, {"decode_mode", "greedy"}}}}}}}});
  add(duplex_client, {{"type", "input.tool_result"}, {"tool_call_id", "call_1"}, {"content", {{"a", 1}}}});
  add(duplex_client, {{"type", "input.tool_result"}, {"tool_call_id", "call_1"}, {"cancelled", true}});
  add(duplex_client,
      {{"type", "input.tool_result"}, {"tool_call_id", "call_1"}, {"contents", {{{"kind", "text"}, {"text", "t"}}}}});
  add(duplex_client, {{"type", "input.standalone"}, {"contents", {{{"kind", "text"}, {"text", "t"}}}}});
  const dom note{{"role", "user"}, {"content", "Hello"}};
  add(duplex_client, {{"type", "input.append"}, {"input", {{"context", {note}}}}});
  add(duplex_client, {{"type", "input.append"},
                      {"input",
                       {{"audio", second},
                        {"context",
                         {note,
                          {{"role", "system"}, {"content", "s"}},
                          {{"role", "assistant"}, {"content", "a"}},
                          {{"role", "tool"}, {"content", "{}"}}}}}}});

  add(chat_client, {{"type", "input.append"}, {"input", {{"messages", {hello}}}}});
  add(chat_client, {{"type", "input.append"}, {"input", {{"messages", std::vector<dom>(256, hello)}}}});
  add(chat_client, {{"type", "input.append"},
                    {"input",
                     {{"messages",
                       {{{"role", "system"}, {"content", "s"}},
                        {{"role", "assistant"}, {"content", ""}},
                        {{"role", "user"},
                         {"content",
                          {{{"type", "text"}, {"text", "t"}},
                           {{"type", "image"}, {"data", image}},
                           {{"type", "audio"}, {"data", second}},
                           {{"type", "video"}, {"data", image}, {"stack_frames", 1}}}}}}},
                      {"streaming", false},
                      {"generation",
                       {{"max_new_tokens", 4096},
                        {"length_penalty", 5},
                        {"temperature", 2},
                        {"top_k", 0},
                        {"top_p", 0},
                        {"do_sample", true},
                        {"seed", 1},
                        {"stop", {"a", "b"}}}},
                      {"image", {{"max_slice_nums", 9}}},
                      {"logprobs", 20},
                      {"tool_call_deltas", true},
                      {"omni_mode", false},
                      {"use_tts_template", true},
                      {"enable_thinking", true},
                      {"tts", {{"enabled", true}, {"ref_audio_data", wav_voice()}}}}}});

  add(legacy_client, {{"type", "session.update"}, {"session", {{"instructions", "x"}}}});
  add(legacy_client,
      {{"type", "session.update"},
       {"session",
        {{"instructions", "x"}, {"max_slice_nums", 9}, {"ref_audio", wav_voice()}, {"tts_ref_audio", wav_voice()}}}});
  add(legacy_client,
      {{"type", "session.update"},
       {"session",
        {{"instructions", "x"}, {"max_slice_nums", nullptr}, {"ref_audio", nullptr}, {"tts_ref_audio", nullptr}}}});
  add(legacy_client, {{"type", "input_audio_buffer.append"}, {"audio", sound(4000)}});
  add(legacy_client, {{"type", "input_audio_buffer.append"},
                      {"audio", second},
                      {"video_frames", {image}},
                      {"force_listen", false},
                      {"max_slice_nums", 4}});
  return out;
}

std::vector<sample> refused_client_samples() {
  std::vector<sample> out;
  auto add = [&](std::string_view entry, const dom& event) { out.push_back({entry, event.dump()}); };
  auto second = sound(16'000);
  dom image = jpeg();
  auto url_alphabet = second.substr(0, second.size() - 1) + "-";

  add(duplex_client, dom::array());
  add(duplex_client, dom::object());
  add(duplex_client, {{"type", 5}});
  add(duplex_client, {{"type", "session.init"}});
  add(duplex_client, {{"type", "session.init"}, {"payload", "x"}});
  for (dom config :
       {dom{{"length_penalty", 9}}, dom{{"force_listen_count", -1}}, dom{{"temperature", 2.5}}, dom{{"top_p", 2}},
        dom{{"decode_mode", "x"}}, dom{{"generate_audio", 1}}, dom{{"chunk_ms", 200}}, dom{{"sample_rate", 8000}},
        dom{{"unit_responses", 1}}, dom{{"listen_at_turn_end", "yes"}}, dom{{"transcribe_input", 1}},
        dom{{"max_slice_nums", 0}}, dom{{"sliding_window_mode", "on"}}, dom{{"seed", 0.5}}})
    add(duplex_client, {{"type", "session.init"}, {"payload", {{"config", config}}}});
  add(duplex_client, {{"type", "session.init"}, {"payload", {{"system_prompt", std::string(32'769, 'x')}}}});
  add(duplex_client, {{"type", "session.init"}, {"payload", {{"voice", {{"ref_audio_base64", ""}}}}}});
  for (dom input : {dom::object(), dom{{"audio", nullptr}}, dom{{"audio", ""}}, dom{{"audio", sound(160'001)}},
                    dom{{"audio", url_alphabet}}, dom{{"audio", second}, {"video_frames", std::vector<dom>(5, image)}},
                    dom{{"audio", second}, {"max_slice_nums", 10}}, dom{{"audio", second}, {"force_listen", "yes"}},
                    dom{{"audio", second}, {"hints", {{"max_slice_nums", 0}}}}})
    add(duplex_client, {{"type", "input.append"}, {"input", input}});

  dom hello{{"role", "user"}, {"content", "Hello"}};
  for (dom context : {dom("x"), dom::array(), dom(std::vector<dom>(33, hello)), dom::array({{{"role", "user"}}}),
                      dom::array({{{"role", "user"}, {"content", ""}}}),
                      dom::array({{{"role", "user"}, {"content", std::string(8193, 'x')}}}),
                      dom::array({{{"role", "function"}, {"content", "x"}}})})
    add(duplex_client, {{"type", "input.append"}, {"input", {{"audio", second}, {"context", context}}}});
  add(duplex_client, {{"type", "input.append"}, {"input", {{"context", nullptr}}}});
  for (dom messages :
       {dom::array(), dom(std::vector<dom>(257, hello)), dom::array({{{"role", "function"}, {"content", "x"}}}),
        dom::array({{{"role", "user"}}}), dom::array({{{"role", "user"}, {"content", dom::array()}}}),
        dom::array({{{"role", "user"}, {"content", dom::array({{{"type", "image"}}})}}})})
    add(chat_client, {{"type", "input.append"}, {"input", {{"messages", messages}}}});
  add(chat_client,
      {{"type", "input.append"}, {"input", {{"messages", {hello}}, {"generation", {{"max_new_tokens", 5000}}}}}});
  add(chat_client, {{"type", "input.append"}, {"input", {{"messages", {hello}}, {"image", {{"max_slice_nums", 10}}}}}});
  add(chat_client, {{"type", "input.append"}, {"input", {{"messages", {hello}}, {"streaming", "yes"}}}});
  add(chat_client, {{"type", "input.append"}, {"input", {{"messages", {hello}}, {"logprobs", 21}}}});
  add(chat_client, {{"type", "input.append"}, {"input", {{"messages", {hello}}, {"logprobs", true}}}});

  add(legacy_client, {{"type", "session.update"}});
  for (dom session :
       {dom::object(), dom{{"instructions", ""}}, dom{{"instructions", nullptr}},
        dom{{"instructions", "x"}, {"max_slice_nums", 0}}, dom{{"instructions", "x"}, {"ref_audio", "?"}}})
    add(legacy_client, {{"type", "session.update"}, {"session", session}});
  add(legacy_client, {{"type", "input_audio_buffer.append"}});
  add(legacy_client, {{"type", "input_audio_buffer.append"}, {"audio", sound(3999)}});
  return out;
}

} // namespace parley::protocol::test
