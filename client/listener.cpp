#include "client/listener.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace parley::client {

void listener::sound(seconds now, std::size_t samples) {
  if (samples == 0) return;
  auto begin = std::max(now, end_);
  if (!turn_open_) {
    begin = std::max(now + lead_, end_);
  } else if (now > end_) {
    ++gaps_;
    gap_time_ += now - end_;
  }
  turn_open_ = true;
  heard_.push_back({begin, received_, samples});
  received_ += samples;
  end_ = begin + seconds(static_cast<double>(samples) / rate);
}

void listener::silence(seconds now) {
  if (!std::exchange(turn_open_, false)) return;
  while (!heard_.empty() && heard_.back().begin >= now) heard_.pop_back();
  if (heard_.empty() || end_ <= now) return;
  auto& last = heard_.back();
  const auto played = std::floor((now - last.begin).count() * rate);
  last.samples = std::min(last.samples, static_cast<std::size_t>(played));
  end_ = now;
}

listener::seconds listener::heard_time() const {
  double samples = 0;
  for (const auto& piece : heard_) samples += static_cast<double>(piece.samples);
  return seconds(samples / rate);
}

} // namespace parley::client
