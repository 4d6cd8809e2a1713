#include "actors/queue/worker_selection.hpp"

#include "actors/capacity/prefix_hash.hpp"
#include "tests/actors/queue_fixture.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

using namespace parley;
using namespace parley::tests;
using namespace parley::actors::test;
using actors::choose_worker;
using actors::worker_candidate;

namespace {

std::uint64_t chosen(const std::vector<worker_candidate>& all) {
  const auto best = choose_worker(all);
  return best ? best->worker : 0;
}

conversation::command open_with(std::string prompt, std::vector<float> voice = {}) {
  conversation::open_duplex order{};
  order.system_prompt = std::move(prompt);
  if (!voice.empty()) order.voice = std::make_shared<const std::vector<float>>(std::move(voice));
  return order;
}

std::size_t opens(const stub_script& script) {
  return script.all<conversation::open_duplex>().size();
}

} // namespace

TEST_CASE("a session goes where it loads the worker least, and a prompt that is at hand counts for a quarter") {
  CHECK(chosen({}) == 0);
  CHECK(chosen({{1, 2, 2}, {2, 3, 3, true}}) == 0); // full
  CHECK(chosen({{1, 0, 0, true}, {2, 0, 1}}) == 2); // no slots at all
  CHECK(chosen({{1, 1, 2}, {2, 1, 8}}) == 2);
  CHECK(chosen({{1, 0, 8}, {2, 1, 8, true}}) == 2);
  CHECK(chosen({{1, 0, 8}, {2, 2, 8, true}}) == 1); // would be a quarter fuller
  CHECK(chosen({{1, 3, 8, true}, {2, 1, 8, true}}) == 2);
  CHECK(chosen({{1, 7, 8}, {2, 8, 8, true}}) == 1);
}

TEST_CASE("a ticket that is about to begin moves to the worker that has its prompt") {
  queue_fixture h;
  h.offer(1, 8);
  h.offer(2, 8);
  constexpr actors::prefix_hash mine = 77, other = 78;
  const auto rebalance = [&](actors::ticket_key ticket, actors::prefix_hash prompt) {
    h.last.clear();
    return h.line.rebalance(ticket, prompt, h.now, h.last).value_or(0);
  };
  CHECK(h.enqueue(1) == "1 gets 1");
  CHECK(rebalance(1, mine) == 1); // no worker has the prompt: it stays, and its worker will have it
  CHECK(h.enqueue(2) == "2 gets 2");
  CHECK(rebalance(2, mine) == 1);
  CHECK(h.line.workers()[0].busy == 2);
  CHECK(h.line.workers()[1].busy == 0);
  CHECK(rebalance(2, mine) == 1);
  CHECK(h.enqueue(3) == "3 gets 2");
  CHECK(rebalance(3, mine) == 2); // worker 1 would be a quarter fuller
  CHECK(h.enqueue(4) == "4 gets 2");
  CHECK(rebalance(4, other) == 2);
  CHECK(rebalance(9, other) == 0); // there is no such slot
  h.line.prompts_at(1, {other});
  CHECK(h.enqueue(5) == "5 gets 1");
  CHECK(rebalance(5, mine) == 2);
  CHECK(h.free(2) == "");
  CHECK(h.free(5) == "");
  CHECK(h.line.workers()[0].busy == 1);
  CHECK(h.line.workers()[1].busy == 2);
}

TEST_CASE("who leaves a slot for a better one makes room for the next in line") {
  queue_fixture h;
  h.offer(1, 1);
  h.enqueue(1);
  const auto move = h.line.enqueue(2, "ticket_2", mode::audio, true, h.now, {.avoid = 2}); // must get worker 1
  CHECK(words(move) == "2 queued 1");
  h.offer(2, 4);
  h.line.prompts_at(2, {5});
  h.last.clear();
  CHECK(h.line.rebalance(1, 5, h.now, h.last) == 2U);
  CHECK(words(h.last) == "2 gets 1");
}

TEST_CASE("a session that begins anew elsewhere wants its prompt there") {
  queue_fixture h;
  h.offer(1, 8);
  h.offer(2, 8);
  h.line.prompts_at(2, {5});
  CHECK(words(h.line.enqueue(1, "ticket_1", mode::audio, true, h.now, {.prompt = 5})) == "1 gets 2");
  CHECK(words(h.line.enqueue(2, "ticket_2", mode::audio, true, h.now, {.prompt = 6})) == "2 gets 1");
}

TEST_CASE("beginnings have keys of their own") {
  const auto key = [](const conversation::command& order) { return *actors::prompt_of(order); };
  CHECK(key(open_with("a")) == key(open_with("a")));
  CHECK(key(open_with("a")) != key(open_with("b")));
  CHECK(key(open_with("a", {0.5F})) == key(open_with("a", {0.5F})));
  CHECK(key(open_with("a", {0.5F})) != key(open_with("a")));
  CHECK(key(open_with("a", {0.5F, 0.25F, 0})) != key(open_with("a", {0.5F, 0.25F})));
  CHECK(key(open_with("abcdefgh")) != key(open_with("abcdefgi")));
  CHECK_FALSE(actors::prompt_of(conversation::open_chat{1, {}}));
  CHECK_FALSE(actors::prompt_of(conversation::cut{1}));
}

TEST_CASE("the last beginnings are remembered, the newest first") {
  actors::recent_prompts last;
  for (actors::prefix_hash key = 1; key <= 20; ++key) last.note(key);
  CHECK(last.keys().size() == 16);
  CHECK(last.keys().front() == 20);
  CHECK(last.keys().back() == 5);
  last.note(5);
  CHECK(last.keys().size() == 16);
  CHECK(last.keys().front() == 5);
  CHECK(last.keys().back() == 6);
}

TEST_CASE("sessions with one prompt come together, and every slot comes back") {
  stub_script first(8);
  stub_script second(8);
  test_server core;
  core.add_up(first);
  core.add_up(second);
  auto a = core.connect();
  a.init(R"({"system_prompt":"A"})");
  auto b = core.connect();
  b.init(R"({"system_prompt":"B"})");
  CHECK(first.eventually([](const auto& s) { return opens(s) == 1; }));
  CHECK(second.eventually([](const auto& s) { return opens(s) == 1; }));
  auto c = core.connect(); // two workers are equally loaded: it gets a slot on the first
  c.init(R"({"system_prompt":"B"})");
  CHECK(second.eventually([](const auto& s) { return opens(s) == 2; }));
  auto d = core.connect();
  d.init(R"({"system_prompt":"C"})");
  CHECK(first.eventually([](const auto& s) { return opens(s) == 2; }));
  const auto workers = core.status()["workers"];
  CHECK(workers[0]["busy"] == 2);
  CHECK(workers[1]["busy"] == 2);
  for (auto* each : {&a, &b, &c, &d}) CHECK(each->close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("whoever goes while its place is looked for leaves nothing behind") {
  stub_script first(8);
  stub_script second(8);
  test_server core;
  core.add_up(first);
  core.add_up(second);
  auto one = core.connect();
  one.init();
  for (int i = 0; i < 50; ++i) {
    auto client = core.connect();
    client.link->next("session.queue_done");
    client.send_text(R"({"type":"session.init","payload":{}})");
    if (i % 3 == 0) client.send_text(R"({"type":"session.close"})");
    client.vanish();
  }
  CHECK(one.close_session() == "user_stop");
  CHECK(core.all_free());
  CHECK(first.eventually([](const auto& s) { return s.open_sessions() == 0; }));
  CHECK(second.eventually([](const auto& s) { return s.open_sessions() == 0; }));
}
