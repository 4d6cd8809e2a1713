#pragma once

#include "grammar/json_grammar.hpp"
#include "inference/chat/prompt.hpp"
#include "inference/chat/rendered_text.hpp"
#include "inference/engine/helper_threads.hpp"
#include "inference/engine/image_preprocessor.hpp"
#include "inference/engine/task_context.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Texts on their way to tokens (`stage::read`).
namespace parley::inference {

/// One text.
struct text_job final : helper_job {
  text_job(const tokenizer& words, chat::rendered_text of, std::int64_t most)
      : tokens(words), text(std::move(of)), most(most) {}
  bool work(const std::function<bool()>& wanted) noexcept override;

  const tokenizer tokens;
  const chat::rendered_text text;
  const std::int64_t most; ///< once there are more tokens, the rest is left out

  std::vector<token_id> ids;
  std::exception_ptr trouble;
};

/// The messages of a chat turn, and the grammar that its answer may have to obey.
struct turn_job final : helper_job {
  /// `pictures`: sliced; null = none. What `with` names must outlive the job.
  turn_job(const task_context& with, std::shared_ptr<const submit_turn> turn, std::shared_ptr<image_job> pictures)
      : with_(with), turn_(std::move(turn)), pictures_(std::move(pictures)) {}
  bool work(const std::function<bool()>& wanted) noexcept override;

  std::optional<std::pair<failure_kind, std::string>> objection; ///< why the messages can't be answered
  std::exception_ptr trouble;
  chat::prompt_ids prompt;
  std::vector<std::vector<float>> clips;                ///< its sounds, at 16 kHz
  bool undecided = false;                               ///< its first token is to decide whether it is a call
  std::shared_ptr<const grammar::json_grammar> grammar; ///< of its calls, or of the whole answer; null = neither

private:
  void read();
  void refuse(failure_kind kind, std::string why) { objection.emplace(kind, std::move(why)); }

  const task_context& with_;
  const std::shared_ptr<const submit_turn> turn_;
  const std::shared_ptr<image_job> pictures_;
};

} // namespace parley::inference
