#include "actors/cluster/link_guard.hpp"

#include "actors/logger.hpp"

#include <caf/io/all.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::actors {

namespace {

namespace basp = caf::io::basp;

/// What CAF writes before the contents of a message of one value: no actors that it passes through, no number of a type of
/// its own, and the length of the type's name in one byte.
constexpr std::string_view before_type("\0\0\0", 3);
constexpr std::string_view one_value = "@<>+";

/// The type of the one value that a message holds; empty if it is not such a message.
std::string_view type_in(std::string_view payload) {
  if (!payload.starts_with(before_type) || payload.size() <= before_type.size()) return {};
  payload.remove_prefix(before_type.size());
  const auto length = static_cast<unsigned char>(payload.front());
  payload.remove_prefix(1);
  if (length > 0x7F || length > payload.size() || !payload.starts_with(one_value)) return {};
  return payload.substr(one_value.size(), length - one_value.size());
}

std::string_view bytes_of(const caf::io::new_data_msg& data) {
  return {data.buf.data(), data.buf.size()};
}

} // namespace

frame_verdict judge_message(const basp::header& header, std::string_view payload) {
  // Without this guard, CAF asks each new node for the actor that starts others there; it gets no answer.
  if (header.has(basp::header::named_receiver_flag)) return frame_verdict::drop;
  if (!caf::message_id(header.operation_data).is_async()) return frame_verdict::cut;
  const bool known = std::ranges::find(node_messages, type_in(payload)) != std::end(node_messages);
  return known && header.source_actor != 0 ? frame_verdict::pass : frame_verdict::cut;
}

caf::behavior link_guard::make_behavior() {
  auto inner = basp_broker::make_behavior();
  const caf::message_handler guard([this, inner](const caf::io::new_data_msg& data) mutable {
    set_context(data.handle);
    switch (judge(data)) {
    case frame_verdict::pass: inner(current_mailbox_element()->content()); return;
    case frame_verdict::drop:
      this_context->cstate = basp::await_header;
      configure_read(data.handle, caf::io::receive_policy::exactly(basp::header_size));
      return;
    case frame_verdict::cut:
      log()->warn("a link between nodes is cut: what comes over it is not what Parley sends");
      return cut(data.handle);
    }
  });
  return guard.or_else(inner);
}

frame_verdict link_guard::judge(const caf::io::new_data_msg& data) {
  if (this_context->cstate == basp::await_payload) return judge_payload(this_context->hdr, data);
  basp::header header{};
  caf::binary_deserializer source(context(), data.buf);
  if (source(header)) return frame_verdict::cut;
  const auto peer = instance.tbl().lookup_direct(data.handle);
  const bool known = peer != caf::none;
  if (known && peer == this_node()) return frame_verdict::cut; // it says that it is this process
  switch (header.operation) {
  case basp::message_type::heartbeat:
  case basp::message_type::client_handshake: return frame_verdict::pass; // CAF repeats it
  case basp::message_type::server_handshake: return known ? frame_verdict::cut : frame_verdict::pass;
  case basp::message_type::direct_message:
  case basp::message_type::monitor_message:
  case basp::message_type::down_message:
    return known && header.payload_len > 0 ? frame_verdict::pass : frame_verdict::cut;
  case basp::message_type::routed_message: break; // nobody passes messages on for others
  }
  return frame_verdict::cut;
}

frame_verdict link_guard::judge_payload(const basp::header& header, const caf::io::new_data_msg& data) {
  const auto peer = instance.tbl().lookup_direct(data.handle);
  switch (header.operation) {
  case basp::message_type::direct_message:
    if (proxies().count_proxies(peer) >= most_known_actors) return frame_verdict::cut;
    return judge_message(header, bytes_of(data));
  case basp::message_type::client_handshake: {
    caf::node_id from;
    caf::binary_deserializer source(context(), data.buf);
    if (source(from)) return frame_verdict::cut;
    return peer == caf::none || from == peer ? frame_verdict::pass : frame_verdict::cut;
  }
  case basp::message_type::monitor_message:
  case basp::message_type::down_message: {
    caf::node_id from;
    caf::node_id to;
    caf::binary_deserializer source(context(), data.buf);
    if (source(from, to)) return frame_verdict::cut;
    return from == peer && to == this_node() ? frame_verdict::pass : frame_verdict::cut;
  }
  default: return frame_verdict::pass;
  }
}

void link_guard::cut(caf::io::connection_handle link) {
  connection_cleanup(link, caf::sec::malformed_basp_message);
  close(link);
}

} // namespace parley::actors
