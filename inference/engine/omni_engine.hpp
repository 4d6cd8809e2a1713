#pragma once

#include "inference/engine.hpp"
#include "inference/engine/draw_trace.hpp"
#include "inference/engine/isolate.hpp"
#include "inference/engine/load_meter.hpp"
#include "inference/engine/picture_desk.hpp"
#include "inference/engine/prompt_shelf.hpp"
#include "inference/engine/session.hpp"
#include "inference/engine/voice_desk.hpp"
#include "inference/quirks.hpp"
#include "inference/talker.hpp"
#include "inference/thinker.hpp"

#include <map>
#include <memory>

namespace parley::inference {

/// Why a recording (16 kHz) can't be a reference voice, in words for the client; none = it can. Null and empty ones
/// mean the default voice.
std::optional<std::string> voice_objection(const pcm& recording);

/// The engine over a loaded model: keeps the sessions, asks the planner what to do, makes the batched calls.
class omni_engine final : public engine {
public:
  struct options {
    engine_info info;
    quirks how;
    std::optional<std::uint64_t> seed; ///< of sessions without one; none = random
    int threads = 0;                   ///< intra-op; 0 = as torch finds
    pass_limits limits;
    std::shared_ptr<const speech::voice> default_voice; ///< null: who brings no voice gets text alone
    std::size_t kept_voices = 16;
    std::size_t kept_prompts = inference::kept_prompts;
    int most_sessions = 0;                      ///< for which there is memory; 0 = info.slots
    std::optional<slot_estimate> slots_by_pace; ///< none: info.slots are all that there ever are
    int picture_threads = 2;
    bool trace_draws = false;                                             ///< logs how close those of each unit were
    std::map<session_id, std::vector<llm::draw_record>>* draws = nullptr; ///< gets every draw of text; for tests
    std::map<session_id, std::vector<double>>* speech_margins = nullptr;  ///< gets how close each draw of speech was
  };

  /// Without a talker all answers are text.
  omni_engine(std::shared_ptr<const thinker> model, std::shared_ptr<const talker> speaker, llm::kv_pool pool,
              options how, sink out);

  const engine_info& info() const override { return options_.info; }
  engine_load load() const override;
  void handle(command&& order) override;
  bool advance() override;

  /// Pages of the pool that no session holds; all of them when no session is left. Some may hold prompts, for the next
  /// one who brings the same.
  int free_pages() const { return pool_.free_pages() + prompts_.own_pages(); }

private:
  // commands
  void take(open_duplex&& order);
  void take(open_chat&& order);
  void take(submit_unit&& order);
  void take(submit_turn&& order);
  void take(cut&& order);
  void take(cancel_turn&& order);
  void take(close_session&& order);
  session* find(session_id id);
  session* admit(session_id id, std::optional<std::uint64_t> seed);
  audio::encoder_cache encoder_cache();

  // isolation: none of these throws
  template<class Step>
  void guarded(session& s, Step&& step) noexcept;
  void fail(session& s, failure kind, const char* message) noexcept;
  void fail(session& s, failure kind, const std::string& message) noexcept { fail(s, kind, message.c_str()); }
  void refuse(session_id id, std::uint64_t number, failure kind, const char* message) noexcept;
  void give_up(session& s, failure kind, const char* message) noexcept;
  void end(session_id id) noexcept;
  void bury() noexcept;
  std::uint64_t take_back(session& s);

  // prompts
  void begin_prompt(session& s);
  bool prompt_is_made(const session& s) const;
  void hand_out_prompts();
  void know_prompt(session& s, std::int64_t voice_rows);
  void build_prompt(session& s, at::Tensor voice);
  void prompt_fed(session& s);
  void prompt_there(session& s);

  // duplex
  void start_unit(session& s);
  std::optional<std::pair<failure, std::string>> objection(const session& s, const submit_unit& unit, int pieces) const;
  void unit_heard(session& s, at::Tensor sound);
  void gather_unit(session& s, const at::Tensor& frames);
  void decide(session& s);
  void finish_unit(session& s);
  void close_unit(session& s);
  void slide(session& s);
  void slide_fed(session& s);

  void begin_unit_speech(session& s);
  void tell_text(session& s);
  void unit_chosen(session& s);
  void window_made(session& s, at::Tensor samples);
  void unit_spoken(session& s);
  void complete_unit(session& s);
  void cut_speech(session& s);

  // chat
  void start_turn(session& s);
  void begin_turn(session& s);
  void embed_turn(session& s, const at::Tensor& sound);
  void answer(session& s);
  void finish_turn(session& s, finish reason);
  void group_words(session& s, bool over);
  void continue_answer(session& s);
  void tell_words(session& s, std::string text);
  void tell_sound(session& s, const at::Tensor& samples);
  void tell_delta(session& s, std::string text, pcm audio);
  void forget_turn(session& s);

  // replay
  void replay_words(session& s, std::vector<at::Tensor>& rows);
  void words_replayed(session& s);
  void replay_speech(session& s);
  std::shared_ptr<unit_choices> choices_of(const session& s) const;

  // pictures
  std::optional<std::shared_ptr<picture_order>> order_pictures(session_id owner, std::vector<image_file> files,
                                                               int max_slice_nums);
  void take_pictures(session& s, std::shared_ptr<picture_order> pictures);
  void forget_pictures(session& s);
  void hand_out_pictures();
  void pictures_sliced(session& s);
  void all_seen(session& s);

  // speech
  void ask_voice(session& s, const pcm& recording);
  void give_voice(session& s, std::shared_ptr<const speech::voice> voice);
  void hand_out_voices();
  void begin_talk(session& s);
  void choose_speech(const std::vector<session_id>& ids);
  void make_sound(const std::vector<session_id>& ids);

  // stages
  void hear(const std::vector<session_id>& ids);
  void hear_clips(session_id id);
  void see(const std::vector<pass_plan::piece>& plan);
  void run_llm(const pass_plan& plan);
  void fed(session& s, std::int64_t rows, bool wanted, std::vector<session*>& drawing);
  void prefilled(session& s);
  void draw(const std::vector<session*>& sessions);
  void settle(session& s);
  void next_job(session& s) noexcept;
  void begin_prefill(session& s, purpose why, at::Tensor rows);
  void use_threads();
  bool any_busy() const;
  std::vector<ready_session> ready_sessions() const;
  std::vector<session*> still_at(stage at, const std::vector<session_id>& ids);
  void wait_for_desks(std::uint64_t pictures_known);
  double share_of_units(const pass_plan& plan);
  void measure(engine_clock::time_point begin, double share);

  std::shared_ptr<const thinker> model_;
  std::shared_ptr<const talker> talker_; ///< null: text alone
  llm::kv_pool pool_;
  options options_;
  sink out_;
  duplex::control_tokens control_;
  llm::duplex_sampling_ids duplex_ids_;
  chat::answer_ids answer_ids_;
  prompt_shelf prompts_;
  std::uint64_t prompt_hits_ = 0, prompt_misses_ = 0;
  load_meter meter_;
  draw_trace trace_;                                 ///< with `trace_draws`
  std::vector<audio::encoder_cache> spare_encoders_; ///< of sessions that are over
  std::map<session_id, std::unique_ptr<session>> sessions_;
  std::optional<voice_desk> voices_;
  std::optional<picture_desk> pictures_;
};

/// What goes wrong in a step of one session is that session's failure.
template<class Step>
void omni_engine::guarded(session& s, Step&& step) noexcept {
  if (s.over) return;
  try {
    step();
  } catch (...) {
    fail(s, failure::inference, words_of_exception().text);
  }
}

} // namespace parley::inference
