#include "actors/cluster/link_guard.hpp"

#include "actors/bytes/unit_bounds.hpp"
#include "actors/cluster/actor_threads.hpp"
#include "actors/cluster/peer_messages.hpp"
#include "tests/support/mutated.hpp"

#include <caf/io/all.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace parley;
using namespace parley::actors;
using caf::io::basp::header;
using caf::io::basp::message_type;

// What may come over a link between nodes, as CAF writes and reads it.

namespace {

using bytes = std::vector<char>;

struct node_types {
  caf::actor_system_config config;
  caf::actor_system system{prepare(config, std::chrono::milliseconds(5000))};

  bytes payload_of(const caf::message& content) {
    bytes out;
    caf::binary_serializer sink(system, out);
    REQUIRE_FALSE(sink(std::vector<caf::strong_actor_ptr>(), content));
    return out;
  }

  /// Whether CAF can make a message of it.
  bool readable(const bytes& payload, caf::message& content) {
    caf::binary_deserializer source(system, payload);
    std::vector<caf::strong_actor_ptr> stages;
    return !source(stages, content) && !content.empty(); // CAF makes an empty one of what it cannot read
  }

  frame_verdict judge(const caf::message& content, std::uint8_t flags = 0, caf::message_id id = caf::make_message_id(),
                      caf::actor_id from = 9) {
    const auto payload = payload_of(content);
    return judge_message(header(message_type::direct_message, flags, static_cast<std::uint32_t>(payload.size()),
                                id.integer_value(), from, 5),
                         {payload.data(), payload.size()});
  }
};

inference::engine_info some_info() {
  return {"m", "f", "cpu", 4, 8192, true, false, true, {14, 66, true}};
}

conversation::event some_event() {
  conversation::chat_delta delta{1, 2, "Hello", nullptr};
  delta.sampled = {1, 2, 3};
  delta.scores = {{{"a", -0.5}, {{"b", -1}}}};
  delta.calls = {{0, "f", "{}"}};
  return delta;
}

conversation::command some_order() {
  conversation::submit_turn turn{};
  turn.session = 5;
  turn.messages = {{conversation::role::user, {conversation::text_item{"Hello"}}}};
  return turn;
}

/// One of each type that needs no actor.
std::vector<caf::message> all_messages() {
  return {
      caf::make_message(engine_event{some_event()}),
      caf::make_message(open_denied{1}),
      caf::make_message(slots_offered{1, some_info()}),
      caf::make_message(capacity_report{1, {{100, 90, 1, 2, 3, 4, 5}, 1.5, {7, 8}}}),
      caf::make_message(worker_leaves{1}),
      caf::make_message(orphan_closed{1, 2}),
      caf::make_message(node_verdict{node_answer::refused, 0, "no"}),
      caf::make_message(peer_refused{"no"}),
      caf::make_message(log_piece{{"sess_x", 7}, 0, 0, "bytes", false}),
      caf::make_message(piece_taken{5}),
      caf::make_message(log_refused{{"sess_x", 7}, {1, 2}}),
  };
}

/// Those with an actor, which is null here, so that they cannot be read.
std::vector<caf::message> messages_of_nobody() {
  return {
      caf::make_message(engine_open{{}, 1, some_order()}),
      caf::make_message(engine_command{{}, some_order()}),
      caf::make_message(slot_orphaned{{}, 1}),
      caf::make_message(worker_start{{}, 1}),
      caf::make_message(node_hello{{}, {}, "x", some_info()}),
      caf::make_message(peer_hello{{}, 1, "x"}),
      caf::make_message(peer_welcome{}),
  };
}

bool makes_sense(const caf::message& content) {
  if (content.match_elements<engine_event>()) return plausible(content.get_as<engine_event>(0).event);
  if (content.match_elements<slots_offered>()) return plausible(content.get_as<slots_offered>(0).info);
  if (content.match_elements<capacity_report>()) return plausible(content.get_as<capacity_report>(0).capacity);
  if (content.match_elements<log_piece>()) return plausible(content.get_as<log_piece>(0));
  if (content.match_elements<log_refused>()) return protocol::is_session_id(content.get_as<log_refused>(0).session.id);
  if (content.match_elements<node_verdict>()) return content.get_as<node_verdict>(0).answer <= node_answer::refused;
  return true;
}

} // namespace

TEST_CASE("Parley's messages pass a link, and none of CAF's own") {
  node_types of;
  std::size_t types = 0;
  for (const auto& all : {all_messages(), messages_of_nobody()})
    for (const auto& each : all) {
      INFO(caf::to_string(each));
      CHECK(of.judge(each) == frame_verdict::pass);
      CHECK(of.judge(each, 0, caf::make_message_id(), 0) == frame_verdict::cut); // nobody sent it
      CHECK(of.judge(each, 0, caf::make_message_id(17)) == frame_verdict::cut);  // a request
      CHECK(of.judge(each, header::named_receiver_flag) == frame_verdict::drop);
      ++types;
    }
  CHECK(types == std::size(node_messages));
  for (const auto& each : {
           caf::make_message(caf::exit_msg{{}, caf::exit_reason::kill}),
           caf::make_message(caf::down_msg{{}, caf::exit_reason::kill}),
           caf::make_message(caf::error(caf::sec::runtime_error)),
           caf::make_message(caf::link_atom_v, caf::strong_actor_ptr()),
           caf::make_message(caf::unlink_atom_v, caf::strong_actor_ptr()),
           caf::make_message(caf::close_atom_v),
           caf::make_message(1, 2),
           caf::make_message(worker_leaves{1}, worker_leaves{2}),
           caf::message(),
       })
    CHECK(of.judge(each) == frame_verdict::cut);
}

TEST_CASE("a message that was cut, bent or names nobody is refused, or makes sense") {
  node_types of;
  std::mt19937 random(7);
  caf::message back;
  for (const auto& each : messages_of_nobody()) CHECK_FALSE(of.readable(of.payload_of(each), back));
  for (const auto& each : all_messages()) {
    const auto whole = of.payload_of(each);
    REQUIRE(of.readable(whole, back));
    CHECK(caf::to_string(back).size() == caf::to_string(each).size());
    for (std::size_t size = 0; size < whole.size(); ++size)
      if (of.readable({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, back))
        CHECK(makes_sense(back));
    for (int run = 0; run < 20'000; ++run) {
      const auto bent = test::mutated(std::string(whole.begin(), whole.end()), random);
      if (judge_message(header(message_type::direct_message, 0, 1, caf::make_message_id().integer_value(), 9, 5),
                        bent) != frame_verdict::pass)
        continue; // CAF does not get it
      if (of.readable({bent.begin(), bent.end()}, back)) CHECK(makes_sense(back));
    }
  }
}
