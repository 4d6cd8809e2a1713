#pragma once

#include "inference/decoding/answer_decoder.hpp"
#include "inference/decoding/unit_decoder.hpp"
#include "inference/engine/engine_options.hpp"
#include "inference/engine/image_preprocessor.hpp"
#include "inference/engine/pace_meter.hpp"
#include "inference/engine/prefix_cache.hpp"
#include "inference/engine/voice_preparer.hpp"
#include "inference/engine/work_ledger.hpp"
#include "inference/llm/kv_pool.hpp"
#include "inference/llm/shortlist.hpp"
#include "inference/talker.hpp"
#include "inference/thinker.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace parley::inference {

/// Recycles the audio encoder caches of ended sessions.
class encoder_caches {
public:
  /// `model` must outlive this.
  explicit encoder_caches(const thinker& model) : model_(model) {}

  /// An empty cache. Only if the model `hears`.
  audio::encoder_cache take() {
    if (spare_.empty()) return model_.make_encoder_cache();
    auto spare = std::move(spare_.back());
    spare_.pop_back();
    spare.clear();
    return spare;
  }

  void give_back(audio::encoder_cache&& used) noexcept {
    try {
      spare_.push_back(std::move(used));
    } catch (...) { // not kept: the next session gets a new one
    }
  }

private:
  const thinker& model_;
  std::vector<audio::encoder_cache> spare_;
};

/// What all tasks of an engine share: the model, the helpers and caches beside it, and the receivers of their reports.
/// Nothing here belongs to a session. Used by the engine's thread only.
struct task_context {
  task_context(const thinker& thinks, const talker* speaks, const llm::kv_pool& pool, const engine_options& how,
               const engine::sink& out);

  /// Starts slicing the pictures of a unit or turn; null if there are none. Nothing if too many orders are waiting.
  std::optional<std::shared_ptr<image_job>> slice(session_id owner, std::vector<image_file> files, int max_slice_nums);

  const thinker& model;
  const talker* speaker; ///< null: all answers are text
  const engine_options& options;
  const engine::sink& tell;

  const duplex::control_tokens control;
  const llm::duplex_sampling_ids duplex_ids;
  const chat::answer_ids answer_ids;
  const std::optional<llm::shortlist> shortlist; ///< none on the CPU

  prefix_cache prompts;
  encoder_caches encoders;
  std::optional<voice_preparer> voices;       ///< none without a speaker
  std::optional<image_preprocessor> pictures; ///< none if the model does not see
  helper_threads texts;
  pace_meter meter;
  work_ledger ledger;
};

/// Why a recording (16 kHz) can't be a reference voice, in words for the client; none = it can. Null and empty
/// recordings mean the default voice.
std::optional<std::string> voice_objection(const pcm& recording);

} // namespace parley::inference
