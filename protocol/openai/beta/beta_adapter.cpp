#include "protocol/openai/beta/beta_adapter.hpp"

#include "protocol/openai/beta/beta_events.hpp"

#include <utility>

namespace parley::protocol::openai::beta {

effects beta_adapter::on_frame(std::string_view frame, time_point now) {
  if (!beta_ && is_beta_update(frame)) beta_ = true;
  if (!beta_) return machine_->on_frame(frame, now);
  return told(machine_->on_frame(from_beta(frame, temperature_), now));
}

effects beta_adapter::told(effects all) const {
  if (!beta_) return all;
  effects out;
  for (auto& each : all) {
    auto* frame = std::get_if<to_client>(&each);
    if (frame == nullptr)
      out.push_back(std::move(each));
    else if (auto renamed = to_beta(std::move(frame->frame), temperature_))
      out.emplace_back(to_client{std::move(*renamed)});
  }
  return out;
}

} // namespace parley::protocol::openai::beta
