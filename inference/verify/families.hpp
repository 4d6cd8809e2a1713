#pragma once

#include "inference/verify/golden_set.hpp"
#include "inference/verify/report.hpp"

#include <span>
#include <string_view>

namespace parley::inference::verify {

/// Which set of recordings a golden file belongs to.
enum class golden_kind { thinker, talker, end_to_end };

/// A family of golden files and the function that replays them. A file belongs to the first family whose prefix its
/// stem begins with.
struct family {
  golden_kind kind;
  std::string_view prefix;
  void (*replay)(golden_set& files, const std::string& stem, report& out);
};

/// All families; a golden file that belongs to none counts as failed. A new family is one file and one line in
/// families.cpp.
std::span<const family> families();

// The families of docs/model/thinker.md 8 and docs/model/talker.md 12, each in its own file. A call replays all cases
// of one golden file and reports each; a case that throws fails.
void replay_tokenizer(golden_set& files, const std::string& stem, report& out);
void replay_mel(golden_set& files, const std::string& stem, report& out);
void replay_audio_encoder(golden_set& files, const std::string& stem, report& out);
void replay_image(golden_set& files, const std::string& stem, report& out);
void replay_llm(golden_set& files, const std::string& stem, report& out);
void replay_sampling(golden_set& files, const std::string& stem, report& out);
void replay_talker(golden_set& files, const std::string& stem, report& out);
void replay_duplex(golden_set& files, const std::string& stem, report& out);
void replay_chat_family(golden_set& files, const std::string& stem, report& out);

} // namespace parley::inference::verify
