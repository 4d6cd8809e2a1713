#include "actors/kept_unit.hpp"

#include "actors/byte_archive.hpp"
#include "base/assert.hpp"

namespace parley::actors {

template<class A>
static void fields(A& a, kept_unit& of) {
  auto& [sound, frames] = of;
  a(sound, frames);
}

std::size_t kept_unit::bytes() const {
  auto all = sound.bytes();
  for (const auto& frame : frames) all += frame->size();
  return all;
}

std::string pack(const kept_unit& unit) {
  byte_writer out;
  out(unit);
  return out.take();
}

kept_unit unpack(std::string_view bytes) {
  kept_unit unit;
  byte_reader in(bytes);
  in(unit);
  PARLEY_ASSERT(in.complete(), "a unit on the disk is as it was packed");
  return unit;
}

} // namespace parley::actors
