#pragma once

#include "protocol/openai/shared/adapter.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace parley::protocol::openai::beta {

/// Lets a machine of the GA API speak to clients of the beta as well. A client whose first `session.update` has the
/// beta's form is one of them, whatever it said when it connected.
class beta_adapter final : public adapter {
public:
  /// `beta`: the client is known to be one of the beta's.
  beta_adapter(std::unique_ptr<adapter> machine, bool beta) : machine_(std::move(machine)), beta_(beta) {}

  effects start(time_point now) override { return told(machine_->start(now)); }
  effects on_frame(std::string_view frame, time_point now) override;
  effects on_sound(std::span<const float> samples, time_point now) override {
    return told(machine_->on_sound(samples, now));
  }
  effects on_inner_event(std::uint64_t number, const server_event& event, time_point now) override {
    return told(machine_->on_inner_event(number, event, now));
  }
  effects on_inner_closed(std::uint64_t number, time_point now) override {
    return told(machine_->on_inner_closed(number, now));
  }
  effects on_transcript(const transcript& heard, time_point now) override {
    return told(machine_->on_transcript(heard, now));
  }
  effects on_drain(time_point now) override { return told(machine_->on_drain(now)); }
  effects tick(time_point now) override { return told(machine_->tick(now)); }
  std::optional<time_point> next_deadline() const override { return machine_->next_deadline(); }
  const std::string& id() const override { return machine_->id(); }

private:
  effects told(effects all) const;

  const std::unique_ptr<adapter> machine_;
  bool beta_;
  double temperature_ = 0.8;
};

} // namespace parley::protocol::openai::beta
