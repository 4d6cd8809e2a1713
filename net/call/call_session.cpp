#include "net/call/call_session.hpp"

#include "base/utf8.hpp"
#include "net/call/calls.hpp"
#include "net/logger.hpp"

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

namespace parley::net {
namespace {

constexpr std::chrono::seconds connect_time{20};                     ///< from the answer until media flow
constexpr std::size_t most_message_bytes = 4 * most_channel_message; ///< that wait for the session
constexpr std::size_t most_messages = 256;

} // namespace

call_session::call_session(std::string id, const asio::any_io_executor& strand, connections::slot place,
                           std::shared_ptr<admission::reservation> reservation, service& shared, calls& all)
    : id_(std::move(id)), strand_(strand), deadline_(strand_), held_{std::move(place), std::move(reservation)},
      shared_(shared), all_(all) {}

call_session::~call_session() {
  finish();
}

void call_session::run(protocol::call::offer offer, actors::connection_info info, std::uint32_t source, answered tell) {
  has_channel_ = offer.sdp.find("\r\nm=application ") != std::string::npos;
  player_ = std::make_shared<call_player>(source, offer.payload_type);
  owner_ = actors::owner_of(info);
  held_.take_over(weak_from_this(), strand_, shared_.limits, shared_, owner_, player_, all_.clock());
  info_ = std::make_unique<actors::connection_info>(std::move(info));
  {
    const std::lock_guard lock(incoming_);
    tell_ = std::move(tell);
    input_.emplace(offer.payload_type);
  }
  deadline_.expires_after(connect_time);
  deadline_.async_wait([self = shared_from_this()](error_code ec) {
    if (ec || self->transport_connected()) return;
    log()->debug("call {}: no media came about", self->id_);
    self->finish();
  });
  media_offer wanted{std::move(offer.sdp), std::move(offer.mid), offer.payload_type, source};
  all_.begin(std::move(wanted), weak_from_this(), [self = shared_from_this()](std::shared_ptr<media_transport> made) {
    asio::post(self->strand_, [self, made = std::move(made)]() mutable {
      if (!made || self->finished_) {
        if (made) self->all_.end(std::move(made));
        return self->finish();
      }
      self->transport_ = std::move(made);
      self->player_->send_to(self->transport_);
      self->look();
    });
  });
}

bool call_session::transport_connected() const {
  return transport_ && transport_->is_connected();
}

void call_session::cut() {
  asio::post(strand_, [self = weak_from_this()] {
    if (const auto live = self.lock()) live->finish();
  });
}

void call_session::hang_up() {
  cut();
}

// ---- threads of the transport

void call_session::on_answer(std::string sdp) {
  tell_answer(std::move(sdp));
}

void call_session::tell_answer(std::optional<std::string> sdp) {
  answered tell;
  {
    const std::lock_guard lock(incoming_);
    tell = std::exchange(tell_, nullptr);
  }
  if (tell) tell(std::move(sdp));
}

void call_session::on_progress() {
  asio::post(strand_, [self = weak_from_this()] {
    if (const auto live = self.lock()) live->look();
  });
}

void call_session::on_message(std::string&& text, bool binary) {
  {
    const std::lock_guard lock(incoming_);
    message_bytes_ += text.size();
    message next{std::move(text), binary, {}};
    too_many_messages_ = too_many_messages_ || messages_.size() >= most_messages ||
                         message_bytes_ > most_message_bytes || !shared_.has_room(next.held, owner_, next.text.size());
    if (!too_many_messages_) messages_.push_back(std::move(next));
  }
  on_progress();
}

void call_session::on_rtp(std::span<const std::byte> packet) {
  std::vector<float> heard;
  {
    const std::lock_guard lock(incoming_);
    if (input_) heard = input_->take(packet, std::chrono::steady_clock::now());
  }
  if (heard.empty()) return;
  asio::post(strand_, [self = weak_from_this(), heard = std::move(heard)]() mutable {
    if (const auto live = self.lock(); live && live->held_.handle && !live->closing_)
      live->held_.handle->sound(std::move(heard));
  });
}

void call_session::on_lost() {
  cut();
}

// ---- its strand

void call_session::look() {
  if (finished_ || !transport_) return;
  if (leaving_) return transport_->has_room() ? finish() : void();
  if (info_ && transport_->is_connected()) {
    deadline_.cancel();
    held_.handle = shared_.admit(std::move(*info_), held_.link);
    info_.reset();
  }
  send_events(); // tells whether the session takes more
  if (!finished_) pass_messages();
}

void call_session::pass_messages() {
  while (held_.handle && !closing_ && may_read_) {
    message next;
    {
      const std::lock_guard lock(incoming_);
      if (too_many_messages_) return held_.link->close(1013, "too many messages wait");
      if (messages_.empty()) return;
      next = std::move(messages_.front());
      messages_.pop_front();
      message_bytes_ -= next.text.size();
    }
    if (next.binary) {
      held_.handle->binary();
      continue;
    }
    if (!base::utf8::valid(next.text)) return held_.link->close(1007, "the text is not UTF-8");
    may_read_ = held_.link->spend(next.text.size(), std::move(next.held));
    held_.handle->text(std::move(next.text));
  }
}

void call_session::on_ring() {
  if (finished_) return;
  look();
}

void call_session::send_events() {
  for (;;) {
    if (!in_flight_) {
      auto work = held_.link->next();
      may_read_ = work.may_read;
      closing_ = closing_ || work.closing;
      in_flight_ = std::move(work.write);
      if (!in_flight_ && !work.close) return;
      if (!in_flight_) return leave();
    }
    if (has_channel_ && !transport_->has_room()) return;
    if (has_channel_ && !transport_->send_text(*in_flight_)) {
      log()->info("call {}: an event of {} bytes is longer than its client takes", id_, in_flight_->size());
      return finish();
    }
    in_flight_.reset();
    held_.link->written();
  }
}

/// Everything has been given to the transport: ends when that has sent it, or after a while.
void call_session::leave() {
  if (!has_channel_ || transport_->has_room()) return finish();
  leaving_ = true;
  deadline_.expires_after(shared_.limits.close);
  deadline_.async_wait([self = shared_from_this()](error_code ec) {
    if (!ec) self->finish();
  });
}

void call_session::finish() {
  if (std::exchange(finished_, true)) return;
  deadline_.cancel();
  tell_answer(std::nullopt);
  if (player_) player_->send_to(nullptr);
  if (transport_) all_.end(std::move(transport_));
  held_.let_go();
  all_.forget(id_);
}

} // namespace parley::net
