#pragma once

#include <optional>
#include <string>
#include <string_view>

// The id of a spoken answer, by which a client sends it back as history. The server keeps no completions, so the id itself
// holds the words: `audio_NAME.WORDS`, the words in base64 of the URL alphabet.
namespace parley::protocol {

/// `name`: of the completion.
std::string spoken_id(std::string_view name, std::string_view words);

/// The words of an answer; none if the id is none of `spoken_id`. What stands before the id's last dot is not looked at: some
/// clients join the ids of all pieces of a stream.
std::optional<std::string> words_of_spoken_id(std::string_view id);

} // namespace parley::protocol
