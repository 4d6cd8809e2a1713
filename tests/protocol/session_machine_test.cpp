#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <set>

// docs/protocol.md 1, 2, 5, 9 and 10: behaviour that takes more than one event to show.
namespace parley::protocol::test {

TEST_CASE("an unknown mode is told and closed") {
  for (const char* mode : {"", "text", "duplex", "Video", "video "}) {
    driver d({.mode = mode});
    CHECK(d.start() == "error:invalid_payload close:1008");
    CHECK(d.machine.state() == session_state::closed);
    CHECK(d.frame(init_frame()) == "");
  }
}

TEST_CASE("a session id in use is told and closed") {
  driver d;
  CHECK(d.note(d.machine.refuse_duplicate_id(d.now)) == "error:invalid_payload close:1008");
  CHECK(d.gone() == "");
}

TEST_CASE("an early init is held until the worker comes, the latest one counts") {
  driver d;
  d.start();
  d.queued(3);
  CHECK(d.frame(update_frame()) == "");
  CHECK(d.frame(init_frame("7")) == "error:invalid_payload"); // does not replace the init
  CHECK(d.frame(init_frame(R"({"system_prompt":"second"})")) == "");
  CHECK(d.machine.spoken() == dialect::undecided);
  CHECK(d.grant() == "queue_done open");
  CHECK(opened_duplex(d).system_prompt == "second");
  CHECK(d.machine.spoken() == dialect::current);
}

TEST_CASE("more than 50 further inits within 10 s while one waits close with 1008") {
  driver d;
  d.start();
  for (int i = 0; i < 51; ++i) CHECK(d.frame(init_frame()) == "");
  CHECK(d.frame(init_frame()) == "close:1008 cancel");
  driver slow;
  slow.start();
  for (int i = 0; i < 200; ++i) {
    CHECK(slow.frame(init_frame()) == "");
    slow.wait(250ms);
  }
}

TEST_CASE("strict schemas are checked as fast as a connection may have it") {
  driver::options chat;
  chat.mode = "chat";
  driver d(chat);
  d.to_active();
  const auto told = [&](bool strict) {
    d.frame(chat_frame("hello", std::string(R"(,"response_format":{"type":"json_schema","strict":)") +
                                    (strict ? "true" : "false") +
                                    R"(,"schema":{"type":"object","properties":{"a":{"type":"string",
      "pattern":"^(a|b)*a(a|b){10}$"}},"required":["a"],"additionalProperties":false}},"tts":{"enabled":5})"));
    return said_event<error_event>(d.last).message;
  };
  const std::string wrong = "input.tts.enabled: neither true nor false";
  for (int i = 0; i < 3; ++i) CHECK(told(true) == wrong); // 1.5 million steps of 6 million each
  CHECK(told(true) == "strict schemas come faster than they can be checked");
  CHECK(told(false) == wrong);
  d.wait(20s);
  CHECK(told(true) == wrong);
}

TEST_CASE("a rejected init does not fix the dialect, an accepted one does") {
  driver d;
  d.to_connected();
  CHECK(d.frame(init_frame("7")) == "error:invalid_payload");
  CHECK(d.machine.spoken() == dialect::undecided);
  CHECK(d.frame(update_frame()) == "open");
  CHECK(d.machine.spoken() == dialect::legacy);
  CHECK(d.failed(failure(0, conversation::failure_kind::invalid)) == "error:invalid_payload");
  CHECK(d.frame(init_frame()) == "error:invalid_event");
  CHECK(d.frame(update_frame()) == "open");
  CHECK(d.opened() == "created");
}

TEST_CASE("ids: none before session.created, the dialect's own from then on") {
  driver d;
  d.start();
  d.grant();
  CHECK(std::get<send>(d.last.front()).session_id.empty());
  d.frame(update_frame());
  CHECK(d.machine.id() == "rt_1700000000000");
  d.opened();
  CHECK(std::get<send>(d.last.front()).session_id == "rt_1700000000000");
  CHECK(std::get<send>(d.last.front()).spoken == dialect::legacy);

  driver current;
  current.to_active();
  CHECK(std::get<send>(current.last.front()).session_id == "sess_test");
}

TEST_CASE("without a mode the init chooses between chat and video") {
  SECTION("turn_based") {
    driver d({.mode = std::nullopt});
    d.to_connected();
    CHECK(d.frame(init_frame(R"({"mode":"turn_based"})")) == "retype:chat open");
    d.opened();
    CHECK(d.frame(chat_frame()) == "turn:1");
  }
  SECTION("full_duplex") {
    driver d({.mode = std::nullopt});
    d.to_connected();
    CHECK(d.frame(init_frame(R"({"mode":"full_duplex"})")) == "open");
    CHECK(d.machine.kind() == mode::video);
  }
  SECTION("with one it is ignored") {
    driver d({.mode = "audio"});
    d.to_connected();
    CHECK(d.frame(init_frame(R"({"mode":"turn_based"})")) == "open");
    CHECK(d.machine.kind() == mode::audio);
  }
}

TEST_CASE("the third failed init is the last") {
  driver d;
  d.to_connected();
  for (int i = 0; i < 2; ++i) {
    CHECK(d.frame(init_frame()) == "open");
    CHECK(d.failed(failure(0)) == "error:inference_error");
  }
  CHECK(d.frame(init_frame()) == "open");
  CHECK(d.failed(failure(0, conversation::failure_kind::context_full)) == "error:invalid_payload"); // not counted
  CHECK(d.frame(init_frame()) == "open");
  CHECK(d.failed(failure(0)) == "error:inference_error closed:backend_error close:1011 release");
}

TEST_CASE("a worker lost before session.created is replaced twice") {
  driver d;
  d.to_connected();
  CHECK(d.worker_lost() == "enqueue:head");
  CHECK(d.grant() == ""); // the client hears nothing
  CHECK(d.frame(init_frame()) == "open");
  CHECK(d.worker_lost() == "enqueue:head");
  CHECK(d.queued(1) == "queued:1"); // no slot is free, so the client is told
  CHECK(d.grant() == "queue_done open");
  CHECK(d.worker_lost() == "error:worker_connect_failed close:1013");
}

TEST_CASE("the slot is given back once, when it is really free") {
  SECTION("a session that ended while it talked") {
    driver d;
    d.to_active();
    CHECK(d.frame(close_frame()) == "closed:user_stop close:1000 close_engine");
    CHECK(d.machine.holds_worker());
    CHECK(d.gone() == "");
    CHECK(d.engine_closed() == "release");
    CHECK(d.engine_closed() == "");
    CHECK_FALSE(d.machine.holds_worker());
  }
  SECTION("a grant that crosses with the end") {
    driver d;
    d.start();
    CHECK(d.gone() == "cancel");
    CHECK(d.grant() == "release");
  }
  SECTION("a worker that dies before it has closed the session") {
    driver d;
    d.to_active();
    d.gone();
    CHECK(d.worker_lost() == "");
    CHECK(d.engine_closed() == "");
    CHECK_FALSE(d.machine.holds_worker());
  }
}

TEST_CASE("every reason for session.closed, in the words of the dialect") {
  struct cause {
    std::function<void(driver&)> happen;
    std::string current, legacy;
    int code;
  };
  const std::vector<cause> causes{
      {[](driver& d) { d.frame(close_frame()); }, "user_stop", "stopped", 1000},
      {[](driver& d) { d.frame(close_frame("rotation")); }, "rotation", "stopped", 1000},
      {[](driver& d) { d.frame(close_frame("Not a word!")); }, "user_stop", "stopped", 1000},
      {[](driver& d) { d.frame(R"({"type":"session.close","reason":7})"); }, "user_stop", "stopped", 1000},
      {[](driver& d) { d.note(d.machine.on_close_request("admin_stop", d.now)); }, "admin_stop", "stopped", 1000},
      {[](driver& d) { d.note(d.machine.on_close_request("Admin stop", d.now)); }, "user_stop", "stopped", 1000},
      {[](driver& d) { d.wait(600s); }, "timeout", "timeout", 1000},
      {[](driver& d) {
         d.append();
         d.step(listen_report(0, 8191));
         d.append();
       },
       "context_full", "context_full", 1000},
      {[](driver& d) {
         d.drain();
         d.wait(30s);
       },
       "server_shutdown", "server_shutdown", 1001},
      {[](driver& d) {
         d.worker_lost();
         d.wait(30s);
       },
       "backend_error", "error", 1011},
  };
  for (const cause& each : causes)
    for (const dialect spoken : {dialect::current, dialect::legacy}) {
      driver d;
      d.to_active(spoken);
      each.happen(d);
      const std::string& expected = spoken == dialect::current ? each.current : each.legacy;
      INFO(words(d.last));
      CHECK(said_event<session_closed>(d.last).reason == expected);
      CHECK(said_event<session_closed>(d.last).total.has_value());
      CHECK(words(d.last).find("closed:" + expected + " close:" + std::to_string(each.code)) != std::string::npos);
      CHECK(d.machine.closed_reason() == expected);
    }
}

TEST_CASE("before a dialect is known a client's close is user_stop") {
  driver d;
  d.start();
  CHECK(d.frame(close_frame("rotation")) == "closed:user_stop close:1000 cancel");
  CHECK_FALSE(said_event<session_closed>(d.last).total);
}

TEST_CASE("a vanished client is recorded as such") {
  driver d;
  d.to_active();
  d.gone();
  CHECK(d.machine.closed_reason() == "client_closed");
}

TEST_CASE("more than 50 client errors within 10 s close with 1008") {
  driver d;
  d.to_active();
  SECTION("all at once") {
    for (int i = 0; i < 50; ++i) CHECK(d.frame("{}") == "error:missing_field");
    CHECK(d.frame("{}") == "error:missing_field close:1008 close_engine");
  }
  SECTION("50 in each 10 s are endured") {
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 50; ++i) CHECK(d.frame("{}") == "error:missing_field");
      d.wait(10s);
    }
  }
  SECTION("the window slides") {
    for (int i = 0; i < 100; ++i) {
      CHECK(d.frame("{}") == "error:missing_field");
      d.wait(200ms);
    }
    CHECK(d.frame("{}") == "error:missing_field");
    d.now -= 200ms;
    CHECK(d.frame("{}") == "error:missing_field close:1008 close_engine");
  }
  SECTION("in every state before that") {
    driver queued;
    queued.start();
    for (int i = 0; i < 50; ++i) queued.frame(append_frame(dialect::current, 1));
    CHECK(queued.frame("{}") == "error:missing_field close:1008 cancel");
  }
}

TEST_CASE("every error code, as it is provoked") {
  std::set<std::string> provoked;
  const auto take = [&](const driver& d) {
    for (const effect& each : d.all)
      if (const auto* sent = std::get_if<send>(&each))
        if (const auto* wrong = std::get_if<error_event>(&sent->event)) provoked.emplace(traits(wrong->code).wire);
  };
  {
    driver d;
    d.to_connected();
    CHECK(d.append() == "error:not_ready");
    CHECK(d.frame(R"({"type":"x"})") == "error:unknown_event");
    CHECK(d.frame(R"({"type":"session.init"})") == "error:missing_field");
    CHECK(d.frame(init_frame("1")) == "error:invalid_payload");
    d.frame(init_frame());
    CHECK(d.frame(init_frame()) == "error:invalid_event");
    CHECK(d.failed(failure(0)) == "error:inference_error");
    take(d);
  }
  for (const error_code code : {error_code::service_unavailable, error_code::queue_full, error_code::worker_busy,
                                error_code::worker_connect_failed}) {
    driver d;
    d.start();
    CHECK(d.refused(code) == "error:" + std::string(traits(code).wire) + " close:1013");
    CHECK(d.gone() == "");
    take(d);
  }
  {
    driver d;
    d.to_active();
    d.quota_spent();
    take(d);
  }
  driver d;
  d.to_active();
  CHECK(d.resume({"resume_x", 0}) == "refused:resume_refused"); // never accepted: it is only sent on another connection
  CHECK(provoked.size() + 1 == error_table.size());
}

TEST_CASE("a spent quota ends a session in any state, for a reason that is told") {
  driver fresh;
  CHECK(fresh.quota_spent() == "error:quota_exceeded close:1008");
  driver queued;
  queued.start();
  CHECK(queued.quota_spent() == "error:quota_exceeded close:1008 cancel");
  driver connected;
  connected.to_connected();
  CHECK(connected.quota_spent() == "error:quota_exceeded close:1008 release");
  for (const auto spoken : {dialect::current, dialect::legacy}) {
    driver talks;
    talks.to_active(spoken);
    CHECK(talks.quota_spent() == "error:quota_exceeded closed:quota_exceeded close:1008 close_engine");
    CHECK(talks.machine.ended_as() == session_end::quota_exceeded);
    CHECK(talks.quota_spent() == "");
  }
}

TEST_CASE("nothing is said after the end") {
  driver d;
  d.to_active();
  d.append();
  d.frame(close_frame());
  CHECK(d.step(listen_report(0)) == "");
  CHECK(d.failed(failure(0)) == "");
  CHECK(d.append() == "");
  CHECK(d.frame("no JSON") == "");
  CHECK(d.binary() == "");
  CHECK(d.drain() == "");
  CHECK(d.wait(1h) == "");
}

TEST_CASE("session.created tells the prompt") {
  driver d;
  d.to_active(dialect::current, 33);
  const auto& created = said_event<session_created>(d.last);
  CHECK_FALSE(created.turn_based);
  CHECK(created.prompt_length == 33);
  CHECK(created.measured.kv_cache_length == 33);
  CHECK(created.total == small_usage());
}

TEST_CASE("a legacy client may be asked for longer appends") {
  driver d;
  d.to_active(dialect::legacy);
  CHECK(d.append(3'999) == "error:invalid_payload");
  CHECK(d.append(4'000) == "unit:0");
  session_limits limits;
  limits.min_legacy_samples = 1;
  driver lax({.limits = limits});
  lax.to_active(dialect::legacy);
  CHECK(lax.append(1) == "unit:0");
}

} // namespace parley::protocol::test
