#include "inference/engine/omni_engine.hpp"

#include "inference/engine/isolate.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

namespace parley::inference {

omni_engine::omni_engine(std::shared_ptr<const thinker> model, std::shared_ptr<const talker> speaker, llm::kv_pool pool,
                         options how, sink out)
    : model_(std::move(model)), talker_(std::move(speaker)), pool_(std::move(pool)), options_(std::move(how)),
      out_(std::move(out)), control_(duplex::control_tokens::of(model_->text())),
      duplex_ids_(llm::make_duplex_sampling_ids(model_->text(), options_.how)),
      answer_ids_(chat::answer_ids::of(model_->text())), prompts_(pool_, options_.kept_prompts) {
  constexpr std::size_t most_orders = 256; // far more than one of each session
  if (talker_) voices_.emplace(talker_->sound(), options_.kept_voices);
  if (model_->sees())
    pictures_.emplace(vision::slicing_of(model_->config().vision), options_.picture_threads, most_orders);
}

/// The number of threads belongs to the thread that asks torch for work.
void omni_engine::use_threads() {
  thread_local auto used = 0;
  if (options_.threads > 0 && used != options_.threads) at::set_num_threads(used = options_.threads);
}

bool omni_engine::advance() {
  c10::InferenceMode guard;
  use_threads();
  const auto sliced = pictures_ ? pictures_->finished() : 0;
  hand_out_voices();
  hand_out_pictures();
  hand_out_prompts();
  const auto ready = ready_sessions();
  if (ready.empty()) {
    bury();
    wait_for_desks(sliced);
    return any_busy();
  }
  const auto begin = engine_clock::now();
  const auto plan = plan_pass(ready, options_.limits);
  const auto share = share_of_units(plan);
  hear(plan.hear);
  see(plan.see);
  if (plan.clips) hear_clips(*plan.clips);
  run_llm(plan);
  choose_speech(plan.speak);
  make_sound(plan.sound);
  measure(begin, share);
  bury();
  return any_busy();
}

/// Those that the engine itself can do something for.
std::vector<ready_session> omni_engine::ready_sessions() const {
  std::vector<ready_session> ready;
  for (const auto& [id, s] : sessions_) {
    if (s->over) continue;
    // Who has had many steps of a long clip lets others go first.
    const auto deadline =
        s->began + std::chrono::seconds(1) +
        std::chrono::milliseconds(100) * (s->at == stage::clips && s->hearing ? s->hearing->steps() : 0);
    const auto left = s->at == stage::see ? s->pieces - s->pieces_seen
                      : s->rows.defined() ? s->rows.size(0) - s->rows_done
                                          : 0;
    const auto divisible = s->why == purpose::prompt || s->why == purpose::turn;
    const auto elsewhere = s->at == stage::voice || s->at == stage::look || s->at == stage::same_prompt;
    if (s->at != stage::idle && !elsewhere) ready.push_back({id, s->at, deadline, left, divisible});
    if (s->speech_at != stage::idle) ready.push_back({id, s->speech_at, deadline});
  }
  return ready;
}

/// Everybody waits for what is prepared elsewhere: a moment for that, no longer, as a command may come.
void omni_engine::wait_for_desks(std::uint64_t pictures_known) {
  constexpr auto patience = std::chrono::milliseconds(2);
  const auto looking = [](const auto& e) { return e.second->at == stage::look; };
  if (std::any_of(sessions_.begin(), sessions_.end(), looking))
    pictures_->wait(pictures_known, patience);
  else if (voices_ && voices_->awaited())
    voices_->wait(patience);
}

/// How much of a pass is the work of units, which can't wait, and not of prompts, chats and replays: by rows and steps.
double omni_engine::share_of_units(const pass_plan& plan) {
  auto units = std::int64_t{0}, all = std::int64_t{0};
  auto count = [&](session_id id, std::int64_t work) {
    const auto& s = *find(id);
    all += work;
    const auto replays = s.duplex && s.duplex->unit && s.duplex->unit->replay;
    if (s.duplex && s.why != purpose::prompt && !replays) units += work;
  };
  for (const auto* steps : {&plan.hear, &plan.decode, &plan.speak, &plan.sound})
    for (auto id : *steps) count(id, 1);
  for (const auto* pieces : {&plan.see, &plan.prefill})
    for (const auto& piece : *pieces) count(piece.session, piece.rows);
  if (plan.clips) ++all;
  return all > 0 ? static_cast<double>(units) / static_cast<double>(all) : 0;
}

void omni_engine::measure(engine_clock::time_point begin, double share) {
  if (!options_.slots_by_pace) return;
  const auto now = engine_clock::now();
  meter_.pass(begin, now, share);
  if (const auto sample = meter_.take(now, static_cast<int>(sessions_.size()))) options_.slots_by_pace->add(*sample);
}

bool omni_engine::any_busy() const {
  return std::any_of(sessions_.begin(), sessions_.end(), [](const auto& e) { return !e.second->idle(); });
}

engine_load omni_engine::load() const {
  engine_load now;
  now.kv_pages = pool_.pages();
  now.kv_pages_free = free_pages();
  now.voice_hits = voices_ ? voices_->hits() : 0;
  now.voice_misses = voices_ ? voices_->misses() : 0;
  now.prompt_hits = prompt_hits_;
  now.prompt_misses = prompt_misses_;
  const auto slots = options_.slots_by_pace ? options_.slots_by_pace->slots() : options_.info.slots;
  now.slots = std::max(slots, static_cast<int>(sessions_.size()));
  return now;
}

/// Those who still wait for this: what came before it in the pass may have failed.
std::vector<session*> omni_engine::still_at(stage at, const std::vector<session_id>& ids) {
  std::vector<session*> members;
  for (auto id : ids)
    if (auto* s = find(id); s && (s->at == at || s->speech_at == at)) members.push_back(s);
  return members;
}

void omni_engine::hear(const std::vector<session_id>& ids) {
  std::map<session*, at::Tensor> heard;
  auto call = [&](std::span<session*> batch) {
    std::vector<thinker::fresh_sound> sounds;
    for (auto* s : batch) {
      auto& d = *s->duplex;
      d.stream = d.before->stream;
      d.intake = d.before->intake;
      d.encoder.length = d.before->encoder_length;
      d.intake.append(*d.unit->samples, d.stream);
      sounds.push_back({&d.stream, &d.encoder, d.intake.chunk(d.stream), d.intake.drop_front()});
    }
    auto rows = model_->hear(sounds);
    for (auto i = std::size_t{0}; i < batch.size(); ++i) heard[batch[i]] = rows[i];
  };
  auto done = run_isolated(still_at(stage::hear, ids), call,
                           [this](session* s, const char* what) { fail(*s, failure::inference, what); });
  for (auto* s : done)
    guarded(*s, [&] {
      s->duplex->intake.consume(s->duplex->stream.config);
      unit_heard(*s, heard[s]);
    });
}

void omni_engine::hear_clips(session_id id) {
  auto* s = find(id);
  if (!s || s->at != stage::clips) return;
  guarded(*s, [&] {
    if (!s->hearing) {
      std::vector<std::span<const float>> clips(s->clips.begin(), s->clips.end());
      if (s->duplex) clips.emplace_back(*s->duplex->prompt.voice);
      s->hearing.emplace(*model_, clips);
    }
    if (!s->hearing->advance()) return;
    auto rows = s->hearing->take();
    s->hearing.reset();
    if (!s->duplex) return embed_turn(*s, rows);
    prompts_.put_heard(s->duplex->prompt.voice, rows);
    build_prompt(*s, std::move(rows));
  });
}

/// The session's prompt is in its cache and its voice is there.
void omni_engine::begin_talk(session& s) {
  s.at = stage::idle;
  out_(opened{s.id, static_cast<int>(s.cache.length()), s.prompt_usage, s.seed});
  next_job(s);
}

/// A unit or turn that can't even begin fails alone; those behind it go on.
void omni_engine::next_job(session& s) noexcept {
  while (!s.over && s.idle() && !(s.units.empty() && s.turns.empty()))
    guarded(s, [&] { s.duplex ? start_unit(s) : start_turn(s); });
}

} // namespace parley::inference
