#include "client/session_socket.hpp"

#include "tests/client/scripted_server.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <stdexcept>

using namespace parley::client;

namespace {

constexpr auto created_frame = R"({"type":"session.created","session_id":"sess_1","resume_token":"resume_1",)"
                               R"("resume_seconds":20,"event_id":1})";

std::string received(scripted_server::peer& client) {
  auto frame = client.receive();
  if (!frame) throw std::runtime_error("the client left");
  return std::move(*frame);
}

void expect(scripted_server::peer& client, std::string_view what) {
  if (const auto frame = received(client); frame != what)
    throw std::runtime_error("it sent " + frame + " instead of " + std::string(what));
}

void expect_query(scripted_server::peer& client, std::string_view query) {
  if (client.target().find(query) == std::string::npos) throw std::runtime_error("it asked for " + client.target());
}

/// A session that goes its way: says what it hears, and sends what the scripts above wait for.
struct session {
  explicit session(const std::string& urls)
      : socket(io.get_executor(), parse_server_urls(urls, {}, {}).value(), 0, 1,
               {.opened = [this] { story += "opened "; },
                .event = [this](std::string_view, const auto& event) { on_event(event); },
                .unreadable = [](std::string_view) { FAIL("not an event"); },
                .lost =
                    [this] {
                      story += "lost ";
                      socket.append("two"); // spoken meanwhile
                    },
                .resumed = [this](std::int64_t resent) { story += "resumed:" + std::to_string(resent) + " "; },
                .ended = [this](const auto& how) { story += how.error.empty() ? "ended" : how.error; }}) {}

  std::string run() {
    socket.connect("audio");
    io.run();
    return story;
  }

  void on_event(const parley::client::server_glance& event) {
    story += std::to_string(event.event_id) + " ";
    if (event.event_id == 1) socket.append("one");
    if (event.event_id == farewell_after) socket.send("bye");
  }

  boost::asio::io_context io{1};
  std::string story;
  std::int64_t farewell_after = -1; ///< event that it answers by ending the session
  session_socket socket;
};

} // namespace

TEST_CASE("a session goes on over another connection") {
  scripted_server server({[](auto& client) {
                            expect_query(client, "mode=audio");
                            client.send(created_frame);
                            expect(client, "one");
                            client.send(R"({"type":"response.listen","event_id":2})");
                            client.vanish();
                          },
                          [](auto& client) {
                            expect_query(client, "?session_id=sess_1&resume_token=resume_1&last_event_id=2");
                            client.send(R"({"type":"session.resumed","session_id":"sess_1","resume_token":"resume_2",)"
                                        R"("inputs":1,"resent":1})");
                            client.send(R"({"type":"response.listen","event_id":3})");
                            expect(client, "two");
                            client.send(R"({"type":"session.closed","reason":"timeout","event_id":4})");
                          }});
  CHECK(session(server.url()).run() == "opened 1 2 lost resumed:1 3 4 ended");
}

TEST_CASE("a server that has no time yet is asked again; one that knows nothing is not") {
  scripted_server server({[](auto& client) {
                            client.send(created_frame);
                            expect(client, "one");
                            client.close(1012);
                          },
                          [](auto& client) {
                            client.send(R"({"type":"error","error":{"code":"service_unavailable","message":"wait"}})");
                            client.close(1013);
                          },
                          [](auto& client) {
                            client.send(R"({"type":"error","error":{"code":"resume_refused","message":"no"}})");
                            client.close(1008);
                          }});
  CHECK(session(server.url()).run() == "opened 1 lost the session could not be resumed");
}

TEST_CASE("a session moves to the next address") {
  scripted_server first({[](auto&client) {
                           client.send(created_frame);
                           expect(client, "one");
                           client.vanish();
                         },
                         [](auto&client) {
                           client.send(R"({"type":"error","error":{"code":"resume_refused","message":"no"}})");
                           client.close(1008);
                         }}),
      second([](auto&client) {
        expect_query(client, "resume_token=resume_1&last_event_id=1");
        client.send(R"({"type":"session.resumed","session_id":"sess_1","resume_token":"resume_2","inputs":0})");
        expect(client, "one");
        expect(client, "two");
        client.send(R"({"type":"session.closed","reason":"timeout","event_id":2})");
      });
  CHECK(session(first.url() + "," + second.url()).run() == "opened 1 lost resumed:0 2 ended");
}

TEST_CASE("a first connection is tried at every address") {
  std::string nobody;
  {
    scripted_server gone(std::vector<scripted_server::script>{});
    nobody = gone.url();
  }
  scripted_server server([](auto& client) { client.send(R"({"type":"session.closed","reason":"timeout"})"); });
  CHECK(session(nobody + "," + server.url()).run() == "opened 0 ended");
}

TEST_CASE("a session's end is sent again if it got lost") {
  scripted_server server({[](auto& client) {
                            client.send(created_frame);
                            expect(client, "one");
                            client.send(R"({"type":"response.listen","event_id":2})");
                            client.send(R"({"type":"response.listen","event_id":3})");
                            expect(client, "bye");
                            client.vanish();
                          },
                          [](auto& client) {
                            client.send(R"({"type":"session.resumed","session_id":"sess_1","resume_token":"resume_2",)"
                                        R"("inputs":2})");
                            expect(client, "bye");
                            client.send(R"({"type":"session.closed","reason":"user_stop","event_id":4})");
                          }});
  session leaving(server.url());
  leaving.farewell_after = 3;
  CHECK(leaving.run() == "opened 1 2 3 lost resumed:0 4 ended");
}
