#pragma once

#include "client/load_scenario.hpp"
#include "client/voice_wire.hpp"

#include <tl/expected.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace parley::client {

/// Everything that a simulated voice agent sends, encoded once and shared by all connections.
class voice_material {
public:
  using frame = std::shared_ptr<const std::string>;

  /// `wavs`: contents of WAV files, not empty. The error says which recording is wrong.
  static tl::expected<voice_material, std::string> make(std::span<const std::string> wavs, const voice_wire& wire);

  const load_script& script() const { return script_; }
  const voice_wire& wire() const { return *wire_; }

  const frame& begin() const { return begin_; }
  const frame& piece(std::size_t unit, std::size_t number) const { return pieces_.at(unit * pieces_per_unit + number); }
  const frame& probe() const { return probe_; }
  const frame& close() const { return close_; } ///< null = there is none

private:
  const voice_wire* wire_ = nullptr;
  load_script script_;
  frame begin_, probe_, close_;
  std::vector<frame> pieces_; ///< those of the silent unit come last
};

} // namespace parley::client
