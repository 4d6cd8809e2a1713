#pragma once

#include "protocol/guest/effects.hpp"
#include "protocol/openai/completions/prompt.hpp"

#include <cstddef>
#include <memory>
#include <utility>

namespace parley::protocol {

/// One answer to a completion's prompt as a chat turn of Parley's own protocol. All that the wire would refuse of such a turn is
/// refused here, by the same checks and under the names of the wire's fields (docs/protocol.md 3.5).
class completion_turn final : public guest::deferred_turn {
public:
  /// `choice`: which of several answers, from 0; each has the next seed.
  completion_turn(std::shared_ptr<const openai_prompt> what, int choice) : what_(std::move(what)), choice_(choice) {}

  std::size_t bytes() const override { return what_->body.size(); }
  bool holds_files() const override { return what_->holds_sound; }
  result<chat_append_event> make() const override;

private:
  std::shared_ptr<const openai_prompt> what_;
  int choice_;
};

} // namespace parley::protocol
