#pragma once

#include <caf/io/basp_broker.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace parley::actors {

/// Messages of these types may come from another machine, and no others: CAF's own would let it end or link actors here.
inline constexpr std::string_view node_messages[] = {
    "parley::engine_event",  "parley::engine_open",     "parley::engine_command", "parley::open_denied",
    "parley::slots_offered", "parley::capacity_report", "parley::worker_leaves",  "parley::orphan_closed",
    "parley::slot_orphaned", "parley::worker_start",    "parley::node_hello",     "parley::node_verdict",
    "parley::peer_hello",    "parley::peer_welcome",    "parley::peer_refused",   "parley::log_piece",
    "parley::piece_taken",   "parley::log_refused",
};

/// How many actors of one other machine are known here at most. Each session and each worker is one.
inline constexpr std::size_t most_known_actors = std::size_t{1} << 16;

/// `drop`: CAF does not get the frame. `cut`: the link ends.
enum class frame_verdict : std::uint8_t { pass, drop, cut };

/// Judges a message for an actor here: only the types above, asynchronous, and with a sender. Pure.
frame_verdict judge_message(const caf::io::basp::header& header, std::string_view payload);

/// CAF's broker for links between nodes, with a guard in front: what comes from another machine cannot end, link or name an
/// actor of this one, nor speak for a third machine.
class link_guard : public caf::io::basp_broker {
public:
  explicit link_guard(caf::actor_config& config) : caf::io::basp_broker(config) {}

  caf::behavior make_behavior() override;

  /// CAF would ask each new node for the actor that starts others there, and wait for it.
  void learned_new_node_directly(const caf::node_id&, bool) override {}
  void learned_new_node_indirectly(const caf::node_id&) override {}

private:
  frame_verdict judge(const caf::io::new_data_msg& data);
  frame_verdict judge_payload(const caf::io::basp::header& header, const caf::io::new_data_msg& data);
  void cut(caf::io::connection_handle link);
};

} // namespace parley::actors
