#include "actors/session/journal_input.hpp"

#include "actors/cluster/byte_archive.hpp"
#include "base/assert.hpp"

namespace parley::actors {

template<class A>
static void fields(A& a, journal_input& of) {
  auto& [sound, frames, context] = of;
  a(sound, frames, context);
}

std::size_t journal_input::bytes() const {
  auto all = sound.bytes();
  for (const auto& frame : frames) all += frame->size();
  for (const auto& each : context) all += sizeof each + each.text.size();
  return all;
}

std::string pack(const journal_input& unit) {
  byte_writer out;
  out(unit);
  return out.take();
}

journal_input unpack(std::string_view bytes) {
  journal_input unit;
  byte_reader in(bytes);
  in(unit);
  PARLEY_ASSERT(in.complete(), "a unit on the disk is as it was packed");
  return unit;
}

} // namespace parley::actors
