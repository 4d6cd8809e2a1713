#pragma once

#include "actors/execution.hpp"
#include "actors/large_frames.hpp"
#include "actors/messages.hpp"
#include "protocol/media/sound_file.hpp"
#include "protocol/media/voice.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace parley::actors {

/// What net/ holds of a session. Small frames are worked on where they come in, large ones
/// and those that may hold much sound in few bytes on threads of their own, all in their order.
template<class Actor>
class frame_handle : public session_handle {
public:
  /// `small_bytes`: a longer frame is large.
  frame_handle(Actor session, std::shared_ptr<large_frames::strand> strand, std::size_t small_bytes,
               link_number link = 0)
      : session_(std::move(session)), strand_(std::move(strand)), small_bytes_(small_bytes), link_(link) {}

  void text(std::string&& frame) override {
    if (strand_->idle() && frame.size() <= small_bytes_ && !is_slow(frame))
      return pass_here(session_, client_frame{std::move(frame), link_});
    hand_in({std::move(frame), link_});
  }

  void binary() override { in_order(client_binary{link_}); }
  void gone() override { in_order(client_gone{link_}); }

protected:
  const Actor& session() const { return session_; }

private:
  /// Whether decoding may take longer than the frame's size suggests. Reads all of it: ask only about small ones.
  static bool is_slow(const std::string& frame) {
    return protocol::may_hold_wav(frame) || protocol::may_hold_coded_sound(frame);
  }

  void hand_in(client_frame&& frame) {
    large_frames::add(strand_, [to = session_, frame = std::move(frame)](auto turn) mutable {
      frame.turn = std::move(turn);
      pass_here(to, std::move(frame));
    });
  }

  template<class Message>
  void in_order(Message message) {
    if (strand_->idle()) return caf::anon_send(session_, std::move(message));
    large_frames::add(strand_, [to = session_, message](const auto&) { caf::anon_send(to, message); });
  }

  const Actor session_;
  const std::shared_ptr<large_frames::strand> strand_;
  const std::size_t small_bytes_;
  const link_number link_;
};

/// For the receiver of a large message: whether it must not be worked on by this thread, because the receiver was busy on it
/// when the message came. Then it comes once more.
template<class Message, class Actor>
bool handed_back(Message& message, const Actor& receiver) {
  if (!message.turn || large_frames::here()) return false;
  auto turn = std::move(message.turn);
  large_frames::again(std::move(turn), [to = receiver, message = std::move(message)](auto next) mutable {
    message.turn = std::move(next);
    pass_here(to, std::move(message));
  });
  return true;
}

} // namespace parley::actors
