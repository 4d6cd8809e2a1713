#pragma once

#include "inference/audio/encoder.hpp"
#include "inference/audio/mel.hpp"
#include "inference/audio/projector.hpp"
#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/llm/qwen3.hpp"
#include "inference/text/tokenizer.hpp"
#include "inference/vision/sight.hpp"

#include <optional>
#include <span>
#include <vector>

namespace parley::inference {

/// The thinker, loaded once and shared by all sessions: turns text, sound and pictures into rows of the language
/// model's input, and contains the language model itself. Holds no session state.
class thinker {
public:
  /// `format`: that of the language model's matrices. Throws std::runtime_error naming a file or weight that is missing
  /// or wrong.
  thinker(const checkpoint& weights, model_config config, at::ScalarType dtype, at::Device device,
          llm::quantization format = llm::quantization::none);

  /// The next second of one session's stream.
  struct fresh_sound {
    audio::mel_stream* stream;    ///< distinct within a call
    audio::encoder_cache* cache;  ///< distinct within a call
    std::span<const float> chunk; ///< `stream->next_need()` samples, 16 kHz
    int drop_front;               ///< see audio::stream_chunk
    int drop_back = 1;
  };

  /// LLM input rows for each stream, [tokens, hidden] in its dtype, with one batched call per stage
  /// (docs/model/thinker.md 3.3, 3.4). This and the next one require `hears`. Throws like `audio::encoder::stream`; the
  /// mel streams have then advanced.
  std::vector<at::Tensor> hear(std::span<const fresh_sound> sounds) const;

  /// The rows of all clips (16 kHz) of one reference call (docs/model/thinker.md 3.2, 3.5), one clip after another:
  /// [tokens, hidden].
  at::Tensor hear_clips(std::span<const std::span<const float>> clips) const;

  /// The same in steps, each of which costs at most one layer over 30 s, so that a long clip delays nobody.
  class clip_hearing {
  public:
    /// `of` and the clips must outlive this. `padded`: see quirks::clips_are_padded.
    clip_hearing(const thinker& of, std::span<const std::span<const float>> clips, bool padded);

    /// Returns true once all clips are encoded. If it throws, nothing has changed.
    bool advance();

    int steps() const { return steps_; }

    /// Returns the rows; call it once.
    at::Tensor take() const;

  private:
    const thinker& of_;
    std::vector<std::span<const float>> pieces_;
    std::int64_t padded_to_ = 0; ///< frames
    std::optional<audio::encoder::clip_pass> pass_;
    std::vector<at::Tensor> rows_;
    int steps_ = 0;
  };

  audio::encoder_cache make_encoder_cache() const { return encoder_->make_cache(); }

  /// See `audio::encoder`; nothing if the model does not hear.
  void reserve_encoder_caches(int caches) const {
    if (encoder_) encoder_->reserve_caches(caches);
  }

  bool hears() const { return encoder_.has_value(); }
  bool sees() const { return sight_.has_value(); }
  const model_config& config() const { return config_; }
  const tokenizer& text() const { return text_; }
  const llm::qwen3& llm() const { return llm_; }

  /// Requires `sees`.
  const vision::sight& sight() const { return sight_.value(); }

private:
  model_config config_;
  tokenizer text_;
  audio::mel_extractor mel_;
  std::optional<audio::encoder> encoder_;
  std::optional<audio::projector> projector_;
  std::optional<vision::sight> sight_;
  llm::qwen3 llm_;
};

} // namespace parley::inference
