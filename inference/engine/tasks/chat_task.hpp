#pragma once

#include "inference/chat/answer.hpp"
#include "inference/chat/conversation.hpp"
#include "inference/chat/prompt.hpp"
#include "inference/engine/session.hpp"
#include "inference/engine/tasks/clip_input.hpp"
#include "inference/engine/tasks/image_input.hpp"
#include "inference/engine/tasks/text_jobs.hpp"
#include "inference/engine/tasks/voice_request.hpp"
#include "inference/tts/chat_speech.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace parley::inference {

/// What a chat session carries from turn to turn: only the state of its random streams. Its tasks are `chat_task`s.
struct chat_session final : session {
  chat_session(session_id number, std::uint64_t seed_of_all, llm::kv_cache keys,
               std::shared_ptr<draw_observer> observer)
      : session(number, seed_of_all, std::move(keys)), spoken_seeds(seed, substream::speech_tokens),
        draws(std::move(observer)) {
    if (draws) scratch.records = &draws->text(id);
  }
  ~chat_session() override {
    if (draws) draws->session_ended(id);
  }

  /// The state of its random streams, and restoring it.
  rng_state rng_now() const { return {chance.where(), spoken_seeds.where(), {}}; }
  void go_on_from(const rng_state& where) {
    chance.go_on_from(where.text);
    spoken_seeds.go_on_from(where.speech);
  }

  random_stream spoken_seeds; ///< gives a seed to the speech of each turn that has none
  const std::shared_ptr<draw_observer> draws;
};

/// One chat turn, from `submit_turn` to `chat_done`: its messages become a prompt, the model answers token by token,
/// and an answer with sound is spoken while it is still being generated.
///
///   thinker:  look → read → see → clips → prefill → decode      (starts later in this line without pictures or sounds)
///   talker:   voice → speak ⇄ sound
class chat_task final : public task {
public:
  chat_task(chat_session& of, task_context& with, submit_turn&& order, std::shared_ptr<image_job> pictures);

  void begin() override;
  std::optional<std::uint64_t> number() const override { return order_->turn; }
  void take_back() override;
  void cancel() override { answer_over(finish_reason::cancelled); }

  engine_clock::time_point deadline() const override { return task::deadline() + clips_.patience(); }
  std::int64_t rows_left() const override { return needs() == stage::see ? images_.left() : task::rows_left(); }
  work_kind kind() const override { return work_kind::chat; }
  bool divisible() const override { return true; }

  void resume() override;
  void on_voice(std::shared_ptr<const speech::voice> voice) override;
  std::vector<const vision::patch_grid*> next_pieces(std::int64_t most) override { return images_.next_pieces(most); }
  void on_seen(at::Tensor rows) override;
  thinker::clip_hearing& clips() override { return clips_.hearing(with_.model, with_.options.how); }
  void on_clips_heard(at::Tensor rows) override { embed(rows); }
  void on_prefilled() override;
  void on_token_fed() override;
  bool wants_token() const override { return needs() == stage::decode; }
  token_id draw(std::span<float> logits) override;
  std::optional<token_id> draw_listed(llm::short_row logits) override;
  void on_token_drawn() override;
  speech::tts_step speech_step() override { return speech_->step(); }
  void on_speech_token() override;
  speech::token2wav::job next_window() override { return speech_->next_window().value(); }
  void on_sound(at::Tensor samples) override;

private:
  chat::answer::drawing drawing() {
    return {session_.chance, session_.scratch, with_.options.info.context_tokens - session_.cache.length()};
  }
  void begin_speech();
  void read();
  void take_prompt();
  void embed(const at::Tensor& sound);
  void ask_voice();
  void give_voice(std::shared_ptr<const speech::voice> voice);
  void group_words(bool over);
  void speak_on();
  void tell_delta(std::string text, pcm audio, std::vector<parley::conversation::call_piece> calls = {});
  void answer_over(finish_reason reason);

  /// Words that are spoken together.
  struct group {
    at::Tensor condition; ///< float32 [words, tts hidden]
    bool last;            ///< no words will follow
  };

  chat_session& session_;
  task_context& with_;
  const std::shared_ptr<const submit_turn> order_;
  rng_state before_; ///< state of the session's streams before the turn

  // the prompt
  image_input images_;
  std::shared_ptr<turn_job> reading_; ///< while its text is being read
  clip_input clips_;
  at::Tensor sight_; ///< [rows, hidden] of the encoded pictures, until the prompt is embedded
  chat::prompt_ids prompt_;

  // the answer
  std::optional<chat::answer> answer_; ///< once the messages have been read
  bool skips_hidden_ = false;          ///< the token that is fed next is none of the answer
  std::size_t told_spoken_ = 0;        ///< speech tokens that the deltas so far have reported
  std::size_t told_samples_ = 0;       ///< generated again, but sent before the turn was replayed
  finish_reason reason_ = finish_reason::turn_end;

  // its sound
  bool speaks_ = false; ///< it is spoken
  voice_request voice_;
  std::optional<speech::chat_speech> speech_;      ///< set when the voice is ready
  std::vector<at::Tensor> hidden_;                 ///< [1, hidden] for each token of the answer that was fed
  std::size_t grouped_ = 0;                        ///< tokens that are in groups
  std::deque<group> groups_;                       ///< groups waiting to be spoken
  std::optional<engine_clock::time_point> worded_; ///< when all words became known
  bool flushed_ = false;                           ///< the rest of the last group is being turned into sound
  std::vector<float> sound_;                       ///< 24 kHz, for an answer whose sound is sent at its end
};

} // namespace parley::inference
