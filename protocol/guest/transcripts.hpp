#pragma once

#include "protocol/transcript.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace parley::protocol::guest {

/// The turns of a user that are being written down, and what each of them is to the guest.
template<class What>
class transcripts {
public:
  /// The request for one.
  transcript_request ask(compact_sound sound, What what, std::string language = {}) {
    asked_.emplace(++last_, std::move(what));
    return {last_, std::move(sound), std::move(language)};
  }

  /// Whose answer this is; none = nobody's.
  std::optional<What> answered(std::uint64_t number) {
    auto found = asked_.extract(number);
    return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
  }

private:
  std::map<std::uint64_t, What> asked_;
  std::uint64_t last_ = 0;
};

} // namespace parley::protocol::guest
