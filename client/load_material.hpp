#pragma once

#include "client/load_scenario.hpp"
#include "protocol/events.hpp"

#include <tl/expected.hpp>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace parley::client {

/// Everything that a load generator sends, encoded once and shared by all its connections.
class load_material {
public:
  using frame = std::shared_ptr<const std::string>;

  /// `wavs`: contents of WAV files. `picture`: contents of an image file that video sends with each second; empty =
  /// none. The error says which recording is wrong.
  static tl::expected<load_material, std::string> make(std::span<const std::string> wavs, const std::string& picture,
                                                       std::span<const std::string> prompts, int max_new_tokens,
                                                       const load_habits& habits);

  const load_script& script() const { return script_; }

  const frame& init(protocol::dialect spoken) const { return inits_[spoken == protocol::dialect::legacy]; }
  const frame& unit(protocol::mode mode, protocol::dialect spoken, std::size_t unit, bool force_listen) const;
  const frame& question(std::uint64_t number) const { return questions_[number % questions_.size()]; }
  const frame& close() const { return close_; }

private:
  load_script script_;
  std::array<frame, 2> inits_;
  /// Indexed by unit, of which the last is silence. The eight variants: without or with force_listen, current or
  /// legacy, audio or video.
  std::array<std::vector<frame>, 8> units_;
  std::vector<frame> questions_;
  frame close_;
};

} // namespace parley::client
