#include "inference/duplex/known_unit.hpp"

#include <stdexcept>

namespace parley::inference::duplex {

known_unit walk(unit_decoder& decoder, const unit_choices& known) {
  known_unit unit;
  auto next = known.sampled.begin();
  auto cut_is_due = known.cut == cut_point::deciding;
  const auto finish = [&] {
    while (decoder.next() != wants::nothing) {
      if (decoder.next() == wants::draw) {
        if (next == known.sampled.end()) throw std::runtime_error("replay: a unit has more tokens than were chosen");
        decoder.sampled(*next++);
      } else if (cut_is_due && next == known.sampled.end()) {
        cut_is_due = false;
        decoder.cut();
      } else {
        unit.fed.push_back(decoder.token());
        if (decoder.fed()) unit.reply.push_back(std::ssize(unit.fed) - 1);
      }
    }
  };
  decoder.begin(known.forced);
  finish();
  unit.ends_turn = decoder.outcome().end_of_turn;
  if (known.cut == cut_point::speaking) {
    decoder.recall();
    finish();
  }
  if (next != known.sampled.end() || cut_is_due) throw std::runtime_error("replay: the choices are not this unit's");
  return unit;
}

} // namespace parley::inference::duplex
