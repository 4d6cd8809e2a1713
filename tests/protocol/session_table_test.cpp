#include "base/assert.hpp"
#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <functional>
#include <map>
#include <set>

// Every cell of the table in docs/protocol.md 5: each event in each state, in both dialects and all modes.
namespace parley::protocol::test {

namespace {

struct connection {
  std::string name;
  std::optional<std::string> mode;
  dialect spoken;
  bool chat;
  bool may_come_back = false;
};

const std::vector<connection> connections = {
    {"chat", "chat", dialect::current, true},
    {"audio, current", "audio", dialect::current, false},
    {"audio, legacy", "audio", dialect::legacy, false},
    {"video, current", "video", dialect::current, false},
    {"video, legacy", "video", dialect::legacy, false},
    {"no mode, current", std::nullopt, dialect::current, false},
    {"no mode, legacy", std::nullopt, dialect::legacy, false},
    {"no mode, turn_based", std::nullopt, dialect::current, true},
    {"audio, may come back", "audio", dialect::current, false, true},
    {"chat, may come back", "chat", dialect::current, true, true},
};

/// ACTIVE counts twice: idle, and with a step or turn running.
enum column { queued, connected, initializing, idle, busy, closed };
constexpr std::array<const char*, 6> column_names{"QUEUED",      "CONNECTED",   "INITIALIZING",
                                                  "ACTIVE idle", "ACTIVE busy", "CLOSED"};
constexpr std::array<const char*, session_states> state_names{"QUEUED", "CONNECTED", "INITIALIZING", "ACTIVE",
                                                              "CLOSED"};

dialect other_than(dialect spoken) {
  return spoken == dialect::legacy ? dialect::current : dialect::legacy;
}

std::string own_init(const connection& c) {
  if (c.spoken == dialect::legacy) return update_frame();
  if (c.may_come_back) return init_frame(R"({"resume":true})");
  return init_frame(c.chat && !c.mode ? R"({"mode":"turn_based"})" : "{}");
}

std::string own_append(const connection& c) {
  return c.chat ? chat_frame() : append_frame(c.spoken);
}

void bring_to(driver& d, const connection& c, column where) {
  d.start();
  if (where >= connected) d.grant();
  if (where >= initializing) d.frame(own_init(c));
  if (where >= idle) d.opened();
  if (where >= busy) d.frame(own_append(c));
  if (where == closed) {
    d.frame(close_frame());
    d.engine_closed();
  }
}

using cells = std::array<const char*, 6>;

struct row {
  std::string event;
  std::set<session_event> kinds;
  std::function<std::string(driver&, const connection&)> cause;
  cells expected;
  std::optional<cells> in_chat = {};
  session_limits limits = {};
};

session_limits patient() {
  session_limits limits;
  limits.init = limits.chat_idle = limits.chat_turn = 9000s;
  return limits;
}

const char* const error_close = "closed:<c> close:1000 close_engine > CLOSED";

cells always(const char* words) {
  return {words, words, words, words, words, ""};
}

const std::vector<row>& table() {
  using enum session_event;
  static const cells nothing{"", "", "", "", "", ""};
  static const cells closing{"closed:<c> close:1000 cancel > CLOSED",
                             "closed:<c> close:1000 release > CLOSED",
                             error_close,
                             error_close,
                             error_close,
                             ""};
  static const cells closing_chat{
      closing[0], closing[1], closing[2], closing[3], "done:cancelled() closed:<c> close:1000 close_engine > CLOSED",
      ""};
  static const cells unsupported{"close:1003 cancel > CLOSED",       "close:1003 release > CLOSED",
                                 "close:1003 close_engine > CLOSED", "close:1003 close_engine > CLOSED",
                                 "close:1003 close_engine > CLOSED", ""};
  static const cells too_early{"error:not_ready",     "error:not_ready",     "error:not_ready",
                               "error:invalid_event", "error:invalid_event", ""};
  static const cells bad_input{"error:not_ready",       "error:not_ready",       "error:not_ready",
                               "error:invalid_payload", "error:invalid_payload", ""};
  const auto say = [](std::string text) {
    return [text = std::move(text)](driver& d, const connection&) { return d.frame(text); };
  };
  static const std::vector<row> rows{
      // ---- the queue
      {"worker assigned",
       {worker_assigned},
       [](driver& d, auto&) { return d.grant(); },
       {"queue_done > CONNECTED", "", "", "", "", "release"}},
      {"told to wait", {}, [](driver& d, auto&) { return d.queued(2); }, {"queued:2", "", "", "", "", ""}},
      {"told its place", {}, [](driver& d, auto&) { return d.update(1); }, {"update:1", "", "", "", "", ""}},
      {"refused by the queue",
       {refused},
       [](driver& d, auto&) { return d.refused(error_code::queue_full); },
       {"error:queue_full close:1013 > CLOSED", "", "", "", "", ""}},
      // ---- the client
      {"init of its dialect",
       {init},
       [](driver& d, const connection& c) { return d.frame(own_init(c)); },
       {"<r>", "<r>open > INITIALIZING", "error:invalid_event", "error:invalid_event", "error:invalid_event", ""}},
      {"init without payload",
       {init},
       [](driver& d, const connection& c) {
         return d.frame(c.spoken == dialect::legacy ? R"({"type":"session.update"})" : R"({"type":"session.init"})");
       },
       {"error:missing_field", "error:missing_field", "error:invalid_event", "error:invalid_event",
        "error:invalid_event", ""}},
      {"init with a bad payload",
       {init},
       [](driver& d, const connection& c) {
         return d.frame(c.spoken == dialect::legacy ? update_frame("7") : init_frame("7"));
       },
       {"error:invalid_payload", "error:invalid_payload", "error:invalid_event", "error:invalid_event",
        "error:invalid_event", ""}},
      {"session.update to a speaker of session.init",
       {init_foreign},
       [](driver& d, const connection& c) {
         return d.frame(c.spoken == dialect::legacy ? init_frame() : update_frame());
       },
       {"<u>", "<u>open > INITIALIZING", "error:invalid_event", "error:invalid_event", "error:invalid_event", ""}},
      {"append of its dialect",
       {append_own},
       [](driver& d, const connection& c) { return d.frame(own_append(c)); },
       {"error:not_ready", "error:not_ready", "error:not_ready", "unit:0", "", ""},
       cells{"error:not_ready", "error:not_ready", "error:not_ready", "turn:1", "", ""}},
      {"append with bad content",
       {append_own},
       [](driver& d, const connection& c) {
         return d.frame(c.spoken == dialect::legacy ? R"({"type":"input_audio_buffer.append","audio":"!"})"
                                                    : R"({"type":"input.append","input":{"audio":"!","messages":3}})");
       },
       bad_input},
      {"append of the other dialect",
       {append_foreign},
       [](driver& d, const connection& c) { return d.frame(append_frame(other_than(c.spoken))); },
       too_early},
      {"a function's result",
       {tool_result},
       say(R"({"type":"input.tool_result","tool_call_id":"call_x","content":"1"})"),
       {"error:not_ready", "error:not_ready", "error:not_ready", "<t>", "<t>", ""}},
      {"session.close", {close}, say(close_frame()), closing, closing_chat},
      {"close by HTTP",
       {close},
       [](driver& d, auto&) { return d.note(d.machine.on_close_request("user_stop", d.now)); },
       closing,
       closing_chat},
      {"unknown type", {other}, say(R"({"type":"no.such"})"), always("error:unknown_event")},
      {"response.create", {other}, say(R"({"type":"response.create","response":{}})"), always("error:unknown_event")},
      {"ping", {other}, say(R"({"type":"ping"})"), always("error:unknown_event")},
      {"no type", {}, say("{}"), always("error:missing_field")},
      {"type is no string", {}, say(R"({"type":3})"), always("error:invalid_payload")},
      {"JSON, but no object", {}, say("[1]"), always("error:invalid_payload")},
      {"no JSON", {}, say("{"), unsupported},
      {"a binary frame", {}, [](driver& d, auto&) { return d.binary(); }, unsupported},
      {"the socket is gone",
       {gone},
       [](driver& d, auto&) { return d.gone(); },
       {"cancel > CLOSED", "release > CLOSED", "close_engine > CLOSED", "<g>", "<g>", ""}},
      // ---- the engine
      {"engine ready",
       {engine_ready},
       [](driver& d, auto&) { return d.opened(); },
       {"", "", "created > ACTIVE", "", "", ""}},
      {"bad voice, prompt or picture",
       {engine_refusal},
       [](driver& d, const connection& c) {
         return d.failed(failure(c.chat ? 1 : 0, conversation::failure_kind::invalid));
       },
       {"", "", "error:invalid_payload > CONNECTED", "", "error:invalid_payload", ""}},
      {"context full",
       {engine_refusal},
       [](driver& d, const connection& c) {
         return d.failed(failure(c.chat ? 1 : 0, conversation::failure_kind::context_full));
       },
       {"", "", "error:invalid_payload > CONNECTED", "", "closed:context_full close:1000 close_engine > CLOSED", ""},
       cells{"", "", "error:invalid_payload > CONNECTED", "", "error:invalid_payload", ""}},
      {"engine failure",
       {engine_failure},
       [](driver& d, const connection& c) { return d.failed(failure(c.chat ? 1 : 0)); },
       {"", "", "error:inference_error > CONNECTED", "", "error:inference_error", ""},
       cells{"", "", "error:inference_error > CONNECTED", "", "error:inference_error done:error()", ""}},
      {"a step's answer",
       {},
       [](driver& d, auto&) { return d.step(listen_report(0)); },
       {"", "", "", "", "listen[0]", ""},
       nothing},
      {"a turn's text",
       {},
       [](driver& d, auto&) { return d.turn(said(1, "hi")); },
       nothing,
       cells{"", "", "", "", "text(hi)", ""}},
      {"a turn's end",
       {},
       [](driver& d, auto&) { return d.done(turn_over(1, "hi")); },
       nothing,
       cells{"", "", "", "", "done:turn_end(hi)", ""}},
      {"the engine's end", {}, [](driver& d, auto&) { return d.engine_closed(); }, nothing},
      {"worker lost",
       {worker_lost},
       [](driver& d, auto&) { return d.worker_lost(); },
       {"", "enqueue:head > QUEUED", "enqueue:head > QUEUED", "enqueue:head", "enqueue:head", ""}},
      {"the second worker lost with the same work",
       {work_lost_twice},
       [](driver& d, auto&) { return d.work_lost_twice(); },
       {"", "error:inference_error closed:<b> close:1011 > CLOSED",
        "error:inference_error closed:<b> close:1011 > CLOSED", "error:inference_error closed:<b> close:1011 > CLOSED",
        "error:inference_error closed:<b> close:1011 > CLOSED", ""}},
      {"worker lost, then no other one",
       {worker_lost, refused},
       [](driver& d, auto&) {
         d.worker_lost();
         return d.refused(error_code::worker_connect_failed);
       },
       {"error:worker_connect_failed close:1013 > CLOSED", "error:worker_connect_failed close:1013 > CLOSED",
        "error:worker_connect_failed close:1013 > CLOSED", "closed:<b> close:1011 > CLOSED",
        "closed:<b> close:1011 > CLOSED", ""}},
      {"worker lost, then another one",
       {worker_lost, worker_assigned},
       [](driver& d, auto&) {
         d.worker_lost();
         return d.grant();
       },
       {"queue_done > CONNECTED", "", "open", "restore", "restore", "release"}},
      // ---- time
      {"the init wait is over",
       {init_wait_over},
       [](driver& d, auto&) { return d.wait(30s); },
       {"", "closed:timeout close:1000 release > CLOSED", "", "", "", ""}},
      {"the mode's limit",
       {time_over},
       [](driver& d, auto&) { return d.wait(1800s); },
       {"closed:timeout close:1000 cancel > CLOSED", "closed:timeout close:1000 release > CLOSED",
        "closed:timeout close:1000 close_engine > CLOSED",
        "go_away:timeout closed:timeout close:1000 close_engine > CLOSED",
        "go_away:timeout closed:timeout close:1000 close_engine > CLOSED", ""},
       {},
       patient()},
      {"a minute without input",
       {time_over},
       [](driver& d, auto&) { return d.wait(60s); },
       {"", "closed:timeout close:1000 release > CLOSED", "", "", "", ""},
       cells{"", "closed:timeout close:1000 release > CLOSED", "", "closed:timeout close:1000 close_engine > CLOSED",
             "", ""}},
      {"two minutes for one turn",
       {},
       [](driver& d, auto&) { return d.wait(120s); },
       nothing,
       cells{"", "", "", "", "error:inference_error cancel_turn done:error()", ""},
       [] {
         session_limits limits = patient();
         limits.chat_turn = 120s;
         return limits;
       }()},
      // ---- a connection that is lost
      {"the socket is gone for longer than a client may stay away",
       {gone, return_over},
       [](driver& d, auto&) {
         d.gone();
         return d.wait(30s);
       },
       {" > CLOSED", " > CLOSED", " > CLOSED", "<w>", "<w>", ""},
       {},
       patient()},
      // ---- the server
      {"drain",
       {drain},
       [](driver& d, auto&) { return d.drain(); },
       {"error:service_unavailable close:1013 cancel > CLOSED",
        "go_away:server_shutdown closed:server_shutdown close:1001 release > CLOSED",
        "go_away:server_shutdown closed:server_shutdown close:1001 close_engine > CLOSED", "go_away:server_shutdown",
        "go_away:server_shutdown", ""}},
      {"a fault of the server",
       {fault},
       [](driver& d, auto&) { return d.note(d.machine.on_fault(d.now)); },
       {"closed:<b> close:1011 cancel > CLOSED", "closed:<b> close:1011 release > CLOSED",
        "closed:<b> close:1011 close_engine > CLOSED", "closed:<b> close:1011 close_engine > CLOSED",
        "closed:<b> close:1011 close_engine > CLOSED", ""}},
      {"the grace of a drain is over",
       {grace_over},
       [](driver& d, auto&) {
         d.drain();
         return d.wait(30s);
       },
       {" > CLOSED", " > CLOSED", " > CLOSED", "closed:server_shutdown close:1001 close_engine > CLOSED",
        "closed:server_shutdown close:1001 close_engine > CLOSED", ""}},
  };
  return rows;
}

/// Fills in the words that depend on the connection.
std::string fill(std::string text, const connection& c, column where) {
  const bool known = where >= initializing;
  const std::map<std::string, std::string> fillings{
      {"<c>", known && c.spoken == dialect::legacy ? "stopped" : "user_stop"},
      {"<b>", known && c.spoken == dialect::current ? "backend_error" : "error"},
      {"<r>", c.chat && !c.mode ? "retype:chat " : ""},
      {"<u>", ""},
      {"<t>", c.chat || c.spoken == dialect::legacy ? "error:invalid_event" : "error:invalid_payload"},
      {"<g>", c.may_come_back ? "" : "close_engine > CLOSED"},
      {"<w>", c.may_come_back ? "close_engine > CLOSED" : " > CLOSED"},
  };
  if (c.mode == "chat" && text.find("<u>") != std::string::npos) return "error:invalid_event";
  for (const auto& [from, to] : fillings)
    if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

} // namespace

TEST_CASE("every event has its meaning in every state") {
  base::set_violation_handler([](const base::assertion_site&) noexcept {});
  std::set<std::pair<session_event, int>> tested;
  for (const connection& c : connections) {
    for (const row& r : table()) {
      for (int where = queued; where <= closed; ++where) {
        INFO(c.name << " | " << r.event << " | " << column_names[where]);
        driver d({.mode = c.mode, .limits = r.limits});
        bring_to(d, c, static_cast<column>(where));
        const session_state before = d.machine.state();
        const cells& expected = c.chat && r.in_chat ? *r.in_chat : r.expected;
        REQUIRE(expected[where] != nullptr);

        const bool impossible = r.kinds.size() == 1 && lookup(*r.kinds.begin(), before) == action::impossible;
        for (const session_event kind : r.kinds) tested.emplace(kind, static_cast<int>(before));
        std::string found;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        if (impossible) continue; // a sanitized build may abort here
        found = r.cause(d, c);
#else
        try {
          found = r.cause(d, c);
        } catch (const base::invariant_violation&) {
          CHECK(impossible);
          continue;
        }
#endif
        if (d.machine.state() != before)
          found += std::string(" > ") + state_names[static_cast<std::size_t>(d.machine.state())];
        CHECK(found == fill(expected[where], c, static_cast<column>(where)));
      }
    }
  }
  for (std::size_t event = 0; event < session_events; ++event)
    for (std::size_t state = 0; state < session_states; ++state) {
      INFO("event " << event << ", state " << state_names[state]);
      CHECK(tested.contains({static_cast<session_event>(event), static_cast<int>(state)}));
    }
  base::set_violation_handler(nullptr);
}

} // namespace parley::protocol::test
