#pragma once

#include "inference/chat/prompt.hpp"
#include "inference/chat/template.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/thinker.hpp"
#include "inference/verify/golden_set.hpp"
#include "inference/vision/pieces.hpp"

#include <nlohmann/json.hpp>

namespace parley::inference::verify {

/// How a recorded conversation's pictures are placed in its prompt; null = as the checkpoint says.
struct picture_arguments {
  nlohmann::json max_slice_nums;
  nlohmann::json use_image_id;

  static picture_arguments of(const nlohmann::json& kwargs);
};

/// Recorded messages with their sounds and pictures.
struct recorded_talk {
  std::vector<chat::template_message> messages;
  std::vector<vision::sliced_picture> pictures;
  bool use_image_id = true;
  std::vector<std::vector<float>> sounds; ///< each sound separately, for the placeholders
  std::vector<std::vector<float>> joined; ///< the sounds of each message joined, for the features
};

/// `messages` as recorded: content is a text or a list of texts, "aud:name:start:end" or "aud:name", and "img:name",
/// joined by `separator`.
recorded_talk read_talk(golden_set& files, const nlohmann::json& messages, std::string_view separator,
                        const picture_arguments& how = {});

/// Makes the answer of `chat()` like the reference, which drops "!" and all trailing letters of its end mark. `raw`
/// receives the text before that.
std::string stripped_answer(const tokenizer& text, std::vector<token_id> tokens, std::string& raw);

/// One chat session, driven as the reference drives it.
class chat_replay {
public:
  explicit chat_replay(const thinker& model);

  chat::prompt_ids encode(const chat::rendered_text& text, const recorded_talk& talk, bool by_seconds) const;

  /// Feeds the whole prompt with its sounds and pictures; returns the hidden states of all rows, [rows, hidden].
  at::Tensor prefill(const chat::prompt_ids& prompt, const recorded_talk& talk);

  // Feeds these and returns their hidden states, [n, hidden]; `rows` as for `llm::qwen3::forward`.
  at::Tensor feed(std::span<const token_id> ids);
  at::Tensor feed_rows(const at::Tensor& rows);

  /// Greedy Hugging Face generation (docs/model/thinker.md 6.3) from the logits of the last row of `hidden`. Appends
  /// the hidden rows of fed tokens to `states`, if given.
  std::vector<token_id> generate(const at::Tensor& hidden, int max_new_tokens, double penalty,
                                 std::vector<at::Tensor>* states = nullptr);

  /// The same with other options and recorded random numbers; `records` receives the draws, if given.
  std::vector<token_id> draw_answer(const at::Tensor& hidden, int max_new_tokens, const llm::chat_sampling& options,
                                    random_source& chance, std::vector<at::Tensor>* states,
                                    std::vector<llm::draw_record>* records = nullptr);

  /// The same with beams (HF beam search, length penalty 1, no early stopping).
  std::vector<token_id> search_beams(const at::Tensor& hidden, int beams, int max_new_tokens, double penalty);

  struct chunk {
    std::vector<token_id> ids;
    bool finished = false;
    at::Tensor hidden; ///< [n, hidden], for the tokens that were fed
    std::string text;  ///< the text that the generator yields
    std::vector<llm::draw_record> draws;
  };

  /// Greedy streaming generation (docs/model/thinker.md 6.4) after `opening`.
  std::vector<chunk> stream(std::span<const token_id> opening, int max_new_tokens, double length_penalty);

  /// The same with other options and recorded random numbers. `spoken`: never sample what cannot be spoken.
  std::vector<chunk> stream(std::span<const token_id> opening, int max_new_tokens, const llm::chat_sampling& options,
                            random_source& chance, bool spoken);

  const thinker& model;
  llm::kv_cache cache;

private:
  bool ends(token_id id) const;
};

} // namespace parley::inference::verify
