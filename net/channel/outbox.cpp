#include "net/channel/outbox.hpp"

#include <utility>

namespace parley::net {

void outbox::push(frame text) {
  if (closing_) return;
  if (bytes_ > 0 && bytes_ + text->size() > bound_) return overflow();
  bytes_ += text->size();
  waiting_.push_back(std::move(text));
}

void outbox::overflow() {
  if (closing_) return;
  waiting_.clear();
  bytes_ = in_flight_bytes_;
  close(1008, "the client reads too slowly");
}

void outbox::close(std::uint16_t code, std::string reason) {
  if (closing_) return;
  closing_ = true;
  close_ = close_frame{code, std::move(reason)};
}

outbox::frame outbox::next() {
  if (in_flight_ || waiting_.empty()) return nullptr;
  frame text = std::move(waiting_.front());
  waiting_.pop_front();
  in_flight_ = true;
  in_flight_bytes_ = text->size();
  return text;
}

void outbox::written() {
  in_flight_ = false;
  bytes_ -= std::exchange(in_flight_bytes_, 0);
}

std::optional<outbox::close_frame> outbox::take_close() {
  if (in_flight_ || !waiting_.empty()) return std::nullopt;
  return std::exchange(close_, std::nullopt);
}

} // namespace parley::net
