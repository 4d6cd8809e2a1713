#pragma once

#include "actors/deadline_timer.hpp"
#include "actors/gateway_api.hpp"
#include "actors/guest/event_handle.hpp"
#include "actors/guest/guest_mailbox.hpp"
#include "actors/messages.hpp"
#include "actors/meters/meters.hpp"
#include "protocol/transcription/transcriber.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace parley::actors {

/// Asks for a turn to be written down.
struct transcript_order {
  protocol::transcript_request what;
};

/// Who asked is gone.
struct transcripts_unwanted {};

using transcription_actor =
    caf::typed_actor<caf::reacts_to<transcript_order>, caf::reacts_to<transcripts_unwanted>,
                     caf::reacts_to<guest_event>, caf::reacts_to<guest_closed>, caf::reacts_to<timer_due>>;

/// The actor around a transcriber: one per connection that wants its user's words. A failure in it ends no conversation.
class transcription final : public transcription_actor::base {
public:
  /// `of`: the connection that it works for. `tell` gets the answers, on this actor's thread; it must not block.
  transcription(caf::actor_config& config, guest_opener open, const connection_info& of, meters& counted,
                std::function<void(protocol::transcript)> tell);

  const char* name() const override { return "transcription"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  void carry_out(protocol::transcriber::effects&& effects);
  void perform(protocol::guest::open_session& effect);
  void perform(protocol::guest::to_session& effect);
  void perform(protocol::guest::turn_to_session& effect);
  void perform(protocol::guest::drop_session& effect);
  void perform(protocol::transcript& effect);
  void drop_session();

  guest_opener open_;
  connection_info info_; ///< of the sessions that it opens
  meters& counted_;
  std::function<void(protocol::transcript)> tell_;
  protocol::transcriber transcriber_;
  std::unique_ptr<guest_handle> session_;
  deadline_timer deadline_timer_;
};

/// Has `writer` write a turn down; `self` gets its transcript_ready in any case. A writer that has ended is forgotten, and
/// those whose turns it had answer for them with `failed`.
template<class Self>
void write_down(Self* self, transcription_actor& writer, protocol::transcript_request what) {
  const auto number = what.number;
  self->request(writer, caf::infinite, transcript_order{std::move(what)})
      .then([] {},
            [self, &writer, number, asked = writer.address()](const caf::error&) {
              if (writer && writer.address() == asked) writer = nullptr;
              self->send(self, transcript_ready{{number, protocol::transcript_result::failed}});
            });
}

} // namespace parley::actors

// These never leave their process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::transcript_order)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(parley::actors::transcripts_unwanted)
