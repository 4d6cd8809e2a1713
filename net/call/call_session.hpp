#pragma once

#include "actors/gateway_api.hpp"
#include "base/byte_budget.hpp"
#include "net/access/admission.hpp"
#include "net/beast.hpp"
#include "net/call/call_channel.hpp"
#include "net/call/call_player.hpp"
#include "net/call/media_transport.hpp"
#include "net/connections.hpp"
#include "net/service.hpp"
#include "net/websocket/session_binding.hpp"
#include "protocol/call/call_input.hpp"
#include "protocol/call/call_request.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace parley::net {

class calls;

/// One call, from its request to its end: a session of OpenAI's Realtime API whose events go over a data channel and whose sound
/// goes beside them. Runs on a strand of its own, except for sound and messages that come in, which threads of the transport pass to it.
class call_session final : public connection, public media_listener, public std::enable_shared_from_this<call_session> {
public:
  /// What the client is told: the answer (SDP), or nothing if there will be none. Called once, by any thread.
  using answered = std::function<void(std::optional<std::string>)>;

  call_session(std::string id, const asio::any_io_executor& strand, connections::slot place,
               std::shared_ptr<admission::reservation> reservation, service& shared, calls& all);
  ~call_session() override;

  const asio::any_io_executor& strand() const { return strand_; }

  /// The first call, on its strand.
  void run(protocol::call::offer offer, actors::connection_info info, std::uint32_t source, answered tell);

  void drain() override {}
  void cut() override;

  /// Ends it as its client would.
  void hang_up();

  /// Ends it where its strand runs no more.
  void abandon() { finish(); }

  void on_answer(std::string sdp) override;
  void on_progress() override;
  void on_message(std::string&& text, bool binary) override;
  void on_rtp(std::span<const std::byte> packet) override;
  void on_lost() override;

  /// Called when its link has something to report.
  void on_ring();

private:
  struct message {
    std::string text;
    bool binary = false;
    std::optional<base::byte_budget::share> held; ///< of a large one
  };

  void tell_answer(std::optional<std::string> sdp);
  void look();
  void pass_messages();
  void send_events();
  void leave();
  bool transport_connected() const;
  void finish();

  const std::string id_;
  std::string owner_; ///< in budgets
  const asio::any_io_executor strand_;
  asio::steady_timer deadline_; ///< until media flow, and at the end until its last events are sent
  session_binding<call_channel, actors::session_handle> held_;
  service& shared_;
  calls& all_;
  std::shared_ptr<call_player> player_;
  std::unique_ptr<actors::connection_info> info_; ///< its session has not begun
  std::shared_ptr<media_transport> transport_;
  text_frame in_flight_; ///< is to be sent next
  bool has_channel_ = false;
  bool may_read_ = true;
  bool closing_ = false; ///< the session takes nothing more
  bool leaving_ = false; ///< its last events are on their way
  bool finished_ = false;

  std::mutex incoming_; ///< guards what follows
  answered tell_;
  std::optional<protocol::call::call_input> input_;
  std::deque<message> messages_; ///< that the session has not been passed
  std::size_t message_bytes_ = 0;
  bool too_many_messages_ = false;
};

} // namespace parley::net
