#include "actors/replay/replay_input.hpp"

namespace parley::actors {

std::size_t replay_input::bytes() const {
  auto all = sound.bytes();
  for (const auto& frame : frames) all += frame->size();
  for (const auto& each : context) all += sizeof each + each.text.size();
  return all;
}

} // namespace parley::actors
