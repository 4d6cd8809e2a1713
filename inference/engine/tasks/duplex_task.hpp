#pragma once

#include "inference/duplex/message_rows.hpp"
#include "inference/engine/tasks/duplex_session.hpp"
#include "inference/engine/tasks/image_input.hpp"
#include "inference/engine/tasks/window_slider.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace parley::inference {

/// One second of a duplex session, from `submit_unit` to its last `step_output`: sound and frames are encoded, the
/// model decides to listen or to speak, and what it says is spoken.
///
///   hear → look → slide → see → prefill → decode → [answered: listen]
///     └──────────────────────────┘           └→ speak → sound → [answered]
///                                          decode ←── cut
///
/// Messages are prefilled before the unit, and a window that has to make room slides first.
class duplex_task : public task {
public:
  duplex_task(duplex_session& of, submit_unit&& order, std::shared_ptr<image_job> pictures);

  void begin() override;
  std::optional<std::uint64_t> number() const override;
  void take_back() override;
  void cut() override;

  work_kind kind() const override { return work_kind::unit; }
  engine_clock::time_point deadline() const override { return due_; }
  std::int64_t rows_left() const override;
  bool divisible() const override { return slider_.under_way() || reads_; }
  int steps_left() const override;
  int pages_to_slide() const override { return slider_.pages(); }

  void resume() override;
  thinker::fresh_sound next_sound() override;
  void on_heard(at::Tensor rows) override;
  std::vector<const vision::patch_grid*> next_pieces(std::int64_t most) override { return images_.next_pieces(most); }
  void on_seen(at::Tensor rows) override;
  void slide(std::int64_t layers) override;
  void on_prefilled() override;
  void on_token_fed() override;
  bool wants_token() const override;
  token_id draw(std::span<float> logits) override;
  std::optional<token_id> draw_listed(llm::short_row logits) override;
  void on_token_drawn() override;
  speech::tts_step speech_step() override { return session_.speech->step(); }
  void on_speech_token() override;
  speech::token2wav::job next_window() override { return session_.speech->next_window().value(); }
  void on_sound(at::Tensor samples) override;

protected:
  // Overridden by units whose choices are known.

  /// Adds rows that follow the unit's input; true = they are all that it will say, so nothing is left to decide.
  virtual bool append_known(std::vector<at::Tensor>& rows);
  virtual void begin_speech(); ///< all words are known
  virtual void tell_text();
  virtual void complete();        ///< everything is generated: sends the last delta
  virtual void input_prefilled(); ///< the unit's input is in the cache, and the rows of `append_known`

  void settle();
  void words_chosen();
  void cut_speech();
  void conclude_unit();
  void end_unit();

  /// The state to which a failed unit is taken back.
  struct snapshot {
    std::int64_t cache_length;
    std::int64_t encoder_length;
    audio::mel_stream stream;
    duplex::audio_intake intake;
    duplex::unit_decoder decoder;
    std::size_t history;
    std::vector<token_id> tail;
    rng_state chance;
    std::optional<speech::duplex_speech::mark> speech; ///< set when the unit is being spoken
  };

  duplex_session& session_;
  submit_unit unit_;
  std::optional<snapshot> before_; ///< set when it has begun
  bool force_listen_ = false;
  cut_point cut_ = cut_point::none;
  std::vector<token_id> drawn_;
  std::vector<at::Tensor> reply_;    ///< [1, hidden] for each token that it says
  step_output answer_;               ///< filled in when the words are chosen
  std::optional<std::int64_t> told_; ///< set when its text was sent: the number of text tokens in its usage

private:
  std::optional<task_failure> objection(int pieces) const;
  std::int64_t room(int pieces) const;
  void make_room();
  void slid();
  void look_on();
  void read_messages();
  void gather();
  void spoken();
  std::shared_ptr<unit_choices> choices_so_far() const;

  image_input images_;
  duplex::message_rows messages_; ///< read before the unit
  engine_clock::time_point due_;
  work_ledger::mark ledger_; ///< when it began
  window_slider slider_;
  bool reads_ = false;        ///< its messages, or many rows of frames, are being prefilled
  bool input_begun_ = false;  ///< `<unit>` and what precedes it are in the cache, or being prefilled
  at::Tensor frames_, sound_; ///< [rows, hidden], until `gather`
  std::int64_t sound_rows_ = 0;
  std::vector<token_id> spoken_; ///< speech tokens, filled in when the sound is complete
  bool answered_ = false;        ///< then the unit cannot be taken back
};

} // namespace parley::inference
