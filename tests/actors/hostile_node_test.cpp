#include "actors/cluster/actor_threads.hpp"
#include "actors/cluster/node_worker.hpp"
#include "actors/log/log_format.hpp"
#include "actors/log/log_record.hpp"
#include "tests/actors/test_server.hpp"
#include "tests/support/temporary_folder.hpp"

#include <caf/io/all.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <sys/socket.h>
#include <utility>

using namespace parley;
using namespace parley::tests;

// Nodes that have passed the handshake, or stolen a certificate, and do what Parley does not.

namespace {

constexpr auto nodes_may_join = actors::server_core::nodes::may_join;

std::pair<actors::node_socket, actors::node_socket> connected_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no sockets");
  return {actors::node_socket(ends[0]), actors::node_socket(ends[1])};
}

/// A process that speaks CAF's protocol to a gateway, and does with its registry what a test wants.
class hostile_node {
public:
  using deed = std::function<void(caf::event_based_actor* self, const caf::strong_actor_ptr& registry)>;

  hostile_node(actors::server_core& victim, deed what)
      : system_(actors::prepare(config_, std::chrono::milliseconds(5000))) {
    config_.add_message_type<int>("int");
    auto [near, far] = connected_sockets();
    victim.admit_node(std::move(far), "test");
    auto& middleman = system_.middleman();
    const auto broker = middleman.named_broker<caf::io::basp_broker>(caf::atom("BASP"));
    const auto scribe = middleman.backend().new_scribe(near.release());
    actor_ = system_.spawn(
        [](caf::event_based_actor* self, const caf::actor& by, const caf::io::scribe_ptr& link, const deed& then,
           std::shared_ptr<std::promise<void>> done) -> caf::behavior {
          self->set_default_handler(caf::drop);
          self->request(by, std::chrono::seconds(20), caf::connect_atom_v, link, std::uint16_t(1))
              .then([=](const caf::node_id&, const caf::strong_actor_ptr& found, const std::set<std::string>&) {
                self->monitor(found);
                then(self, found);
                done->set_value();
              });
          self->set_down_handler([](const caf::down_msg&) {});
          return {[](int) {}};
        },
        broker, scribe, std::move(what), done_);
  }
  ~hostile_node() { caf::anon_send_exit(actor_, caf::exit_reason::kill); }

  /// Waits until it is done.
  void wait() { REQUIRE(done_->get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready); }

private:
  caf::actor_system_config config_;
  caf::actor_system system_;
  std::shared_ptr<std::promise<void>> done_ = std::make_shared<std::promise<void>>();
  caf::actor actor_;
};

/// A worker in a process of its own, as far as CAF knows.
struct joined_worker {
  joined_worker(actors::server_core& gateway, stub_script& script, const std::string& name = "worker")
      : node(
            settings(), name, [&script](inference::engine::sink tell) { return script.make(std::move(tell)); },
            {[&gateway](const std::function<void(actors::dialled)>& done) {
              auto [near, far] = connected_sockets();
              gateway.admit_node(std::move(far), "test");
              done(std::move(near));
            }},
            [this](const actors::registration_event& event) {
              if (event.kind == actors::registration_event::what::joined && !joined_.exchange(true))
                promise_.set_value();
            }) {}

  void wait() { REQUIRE(promise_.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready); }

  static config::settings settings() {
    auto quick = test_server::quick_settings();
    quick.nodes.rejoin_seconds = 0.1;
    return quick;
  }

  std::atomic<bool> joined_{false};
  std::promise<void> promise_;
  actors::node_worker node;
};

/// Whether somebody still answers at the gateway's registry.
void check_that_workers_can_join(test_server& gateway) {
  stub_script script;
  joined_worker worker(gateway.core(), script);
  worker.wait();
  gateway.wait_for(actors::worker_state::up);
  auto client = gateway.connect();
  client.init();
  CHECK(client.step()["kind"] == "listen");
  CHECK(client.close_session() == "user_stop");
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

} // namespace

TEST_CASE("whatever comes from another node ends no actor of this one") {
  test_server gateway(test_server::quick_settings(), nodes_may_join);
  const hostile_node::deed deeds[] = {
      [](auto* self, const auto& registry) { self->send_exit(registry, caf::exit_reason::kill); },
      [](auto* self, const auto& registry) { self->send_exit(registry, caf::exit_reason::user_shutdown); },
      [](auto* self, const auto& registry) {
        self->send(caf::actor_cast<caf::actor>(registry), caf::make_error(caf::sec::runtime_error));
      },
      [](auto* self, const auto& registry) { self->link_to(registry->address()), self->quit(caf::exit_reason::kill); },
      [](auto* self, const auto& registry) {
        self->send(caf::actor_cast<caf::actor>(registry), caf::down_msg{registry->address(), caf::exit_reason::kill});
      },
      [](auto* self, const auto& registry) { self->send(caf::actor_cast<caf::actor>(registry), 7); },
      [](auto* self, const auto& registry) {
        self->request(caf::actor_cast<caf::actor>(registry), std::chrono::seconds(1), 7).then([](int) {});
      },
  };
  for (const auto& deed : deeds) {
    hostile_node node(gateway.core(), deed);
    node.wait();
  }
  check_that_workers_can_join(gateway);
  CHECK(gateway.core().fault().empty());
}

TEST_CASE("a node cannot name actors that are not there, or not its own") {
  test_server gateway(test_server::quick_settings(), nodes_may_join);
  const auto hello = [](actors::worker_actor worker, actors::gateway_registration_actor member) {
    return actors::node_hello{std::move(worker), std::move(member), "x", {}};
  };
  const hostile_node::deed deeds[] = {
      [&](auto* self, const auto& registry) {
        self->send(caf::actor_cast<actors::node_registry_actor>(registry), hello({}, {}));
      },
      [&](auto* self, const auto& registry) { // the registry itself
        self->send(caf::actor_cast<actors::node_registry_actor>(registry),
                   hello(caf::actor_cast<actors::worker_actor>(registry),
                         caf::actor_cast<actors::gateway_registration_actor>(registry)));
      },
      [&](auto* self, const auto& registry) {
        self->send(caf::actor_cast<actors::node_registry_actor>(registry), actors::peer_hello{{}, 1, "x"});
      },
  };
  for (const auto& deed : deeds) {
    hostile_node node(gateway.core(), deed);
    node.wait();
  }
  check_that_workers_can_join(gateway);
  const auto status = gateway.status();
  for (const auto& each : status["workers"]) CHECK(each["node"] == "worker");
}

TEST_CASE("a gateway that sends logs cannot choose where they are written") {
  const temporary_folder folder;
  const auto outside = folder.path() / "outside";
  std::filesystem::create_directory(outside);
  std::ofstream(outside / "kept.copy") << "of somebody else";
  std::ofstream(outside / "kept.session") << "of somebody else";
  auto settings = test_server::quick_settings();
  settings.journal.dir = (folder.path() / "inside").string();
  test_server gateway(settings, nodes_may_join);
  for (const std::string& id :
       {std::string("../outside/kept"), (outside / "kept").string(), std::string("../outside/new"), std::string(".."),
        std::string("a/b"), std::string(), std::string(500, 'x')}) {
    hostile_node node(gateway.core(), [&](caf::event_based_actor* self, const caf::strong_actor_ptr& registry) {
      self->become([id](const actors::peer_welcome& by) {
        actors::logged::beginning first{};
        first.session_id = id;
        std::string log = actors::log_header();
        actors::append_record(log, actors::pack({{}, first}));
        actors::log_piece piece{{id, 0}, 0, 0, log, false};
        caf::send_as(caf::actor_cast<caf::actor>(by.receiver), by.receiver, piece);
      });
      self->send(caf::actor_cast<actors::node_registry_actor>(registry),
                 actors::peer_hello{caf::actor_cast<actors::peer_link_actor>(self), 1, "x"});
    });
    node.wait();
  }
  check_that_workers_can_join(gateway);
  CHECK(content_of(outside / "kept.copy") == "of somebody else");
  CHECK(content_of(outside / "kept.session") == "of somebody else");
  CHECK(std::distance(std::filesystem::directory_iterator(outside), {}) == 2);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("a worker's answer that makes no sense is a failure of its session alone") {
  using conversation::chat_delta;
  using conversation::chat_done;
  using conversation::step_output;
  constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
  stub_script script;
  test_server gateway(test_server::quick_settings(), nodes_may_join);
  joined_worker worker(gateway.core(), script);
  worker.wait();
  gateway.wait_for(actors::worker_state::up);
  auto neighbour = gateway.connect();
  neighbour.init();

  const std::pair<const char*, std::function<void(step_output&)>> units[] = {
      {"text", [](step_output& of) { of.kind = conversation::output_kind::text, of.text = "\xff\xfe"; }},
      {"kind", [](step_output& of) { of.kind = static_cast<conversation::output_kind>(200); }},
      {"rows", [](step_output& of) { of.metrics.kv_cache_length = std::numeric_limits<int>::min(); }},
      {"time", [](step_output& of) { of.metrics.llm_ms = nan; }},
      {"tokens", [](step_output& of) { of.used.input_audio = std::numeric_limits<std::int64_t>::max(); }},
      {"sound",
       [](step_output& of) {
         of.kind = conversation::output_kind::audio;
         of.audio = std::make_shared<const std::vector<float>>(24'000, std::nanf(""));
       }},
  };
  for (const auto& [name, spoil] : units) {
    INFO(name);
    script.answer_units_with([&spoil](step_output reply, const stub_script::sink& tell) {
      conversation::unit_choices chosen;
      chosen.finished = true;
      reply.choices = std::make_shared<const conversation::unit_choices>(std::move(chosen));
      spoil(reply);
      tell(std::move(reply));
    });
    auto client = gateway.connect();
    client.init();
    CHECK(client.step("error")["error"]["code"] == "inference_error");
    client.vanish();
  }

  const std::pair<const char*, std::function<void(chat_delta&, chat_done&)>> turns[] = {
      {"number of a call",
       [](chat_delta& of, chat_done&) {
         of.text.clear(), of.calls.push_back({std::size_t{1} << 40, "f", "{}"});
       }},
      {"text", [](chat_delta& of, chat_done&) { of.text = "a\xff\xfe\xed\xa0\x80"; }},
      {"long text", [](chat_delta& of, chat_done&) { of.text.assign(std::size_t{8} << 20, 'x'); }},
      {"reason", [](chat_delta&, chat_done& of) { of.reason = static_cast<conversation::finish_reason>(200); }},
      {"tokens", [](chat_delta&, chat_done& of) { of.used.output_text = std::numeric_limits<std::int64_t>::min(); }},
      {"names of calls",
       [](chat_delta&, chat_done& of) {
         of.calls.assign(3, conversation::tool_call{"", "f\xff", "not json \xff"});
       }},
      {"too many calls", [](chat_delta&, chat_done& of) { of.calls.resize(5000); }},
      {"likelihood",
       [](chat_delta& of, chat_done&) {
         of.scores.resize(3);
         of.scores[0].chosen.logprob = nan;
       }},
  };
  for (const auto& [name, spoil] : turns) {
    INFO(name);
    script.answer_with([&spoil](const conversation::command& order, const stub_script::sink& tell) {
      const auto* turn = std::get_if<conversation::submit_turn>(&order);
      if (!turn) return stub_script::answer_as_usual(order, tell);
      chat_delta delta{turn->session, turn->turn, "Hi", nullptr};
      chat_done done{turn->session, turn->turn, conversation::finish_reason::turn_end, "Hi", nullptr, {}, {}};
      spoil(delta, done);
      tell(std::move(delta));
      tell(std::move(done));
    });
    auto client = gateway.connect("chat");
    client.init();
    client.send_text(chat_frame("Hello"));
    CHECK(client.link->next("error")["error"]["code"] == "inference_error");
    client.vanish();
  }

  script.answer_with([](const conversation::command& order, const stub_script::sink& tell) {
    const auto* turn = std::get_if<conversation::submit_turn>(&order);
    if (!turn) return stub_script::answer_as_usual(order, tell);
    for (int i = 0; i < 40; ++i) tell(chat_delta{turn->session, turn->turn, std::string(1u << 20, 'x'), nullptr});
  });
  auto client = gateway.connect("chat");
  client.init();
  client.send_text(chat_frame("Say it without an end"));
  CHECK(client.link->next("error")["error"]["code"] == "inference_error");
  client.vanish();

  script.answer_with(stub_script::answer_as_usual);
  CHECK(neighbour.step()["kind"] == "listen");
  CHECK(neighbour.close_session() == "user_stop");
  CHECK(gateway.all_free());
}
