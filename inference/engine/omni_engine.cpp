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

/// What goes wrong for one session is that session's failure.
void omni_engine::guarded(session& s, const std::function<void()>& step) {
  try {
    step();
  } catch (const std::exception& e) {
    fail(s, failure::inference, e.what());
  }
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
  return any_busy();
}

/// Those that the engine itself can do something for.
std::vector<ready_session> omni_engine::ready_sessions() const {
  std::vector<ready_session> ready;
  for (const auto& [id, s] : sessions_) {
    const auto deadline = s->began + std::chrono::seconds(1);
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

void omni_engine::hear(const std::vector<session_id>& ids) {
  std::vector<session*> members;
  for (auto id : ids) members.push_back(find(id));
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
  auto done = run_isolated(std::move(members), call,
                           [this](session* s, const char* what) { fail(*s, failure::inference, what); });
  for (auto* s : done)
    guarded(*s, [&] {
      s->duplex->intake.consume(s->duplex->stream.config);
      unit_heard(*s, heard[s]);
    });
}

void omni_engine::hear_clips(session_id id) {
  run_isolated(
      std::vector{find(id)},
      [this](std::span<session*> one) {
        auto& s = *one.front();
        if (s.duplex) {
          build_prompt(s);
          return;
        }
        embed_turn(s);
      },
      [this](session* s, const char* what) { fail(*s, failure::inference, what); });
}

void omni_engine::begin_prefill(session& s, purpose why, at::Tensor rows) {
  s.why = why;
  s.rows = std::move(rows);
  s.rows_done = 0;
  s.at = stage::prefill;
}

/// Prefill pieces and single tokens are rows of one call: the weights are read once.
void omni_engine::run_llm(const pass_plan& plan) {
  struct part {
    session* owner;
    at::Tensor rows;
    bool wanted; ///< its last row's logits
    bool kept;   ///< the hidden states of `kept_rows`
  };
  std::vector<part> parts;
  std::vector<token_id> tokens;
  for (auto id : plan.decode) tokens.push_back(find(id)->token);
  auto embedded = tokens.empty() ? at::Tensor() : model_->llm().embed(tokens);
  for (auto i = std::size_t{0}; i < plan.decode.size(); ++i)
    parts.push_back({find(plan.decode[i]), embedded.narrow(0, static_cast<std::int64_t>(i), 1), true, false});
  for (const auto& piece : plan.prefill) {
    auto* s = find(piece.session);
    auto last = s->rows_done + piece.rows == s->rows.size(0);
    const auto known = s->duplex && s->duplex->unit && s->duplex->unit->replay;
    parts.push_back({s, s->rows.narrow(0, s->rows_done, piece.rows),
                     last && !known && (s->why == purpose::unit || s->why == purpose::turn),
                     !s->kept_rows.empty() && s->why == purpose::unit});
  }
  auto call = [this](std::span<part> batch) {
    std::vector<at::Tensor> rows;
    std::vector<llm::sequence_rows> sequences;
    std::vector<std::int64_t> wanted;
    std::vector<session*> owners, keepers;
    std::vector<std::int64_t> kept;
    auto count = std::int64_t{0};
    for (const auto& p : batch) {
      for (auto row : p.kept ? p.owner->kept_rows : std::vector<std::int64_t>()) {
        kept.push_back(count + row);
        keepers.push_back(p.owner);
      }
      rows.push_back(p.rows);
      sequences.push_back({&p.owner->cache, p.rows.size(0)});
      count += p.rows.size(0);
      if (p.wanted) {
        wanted.push_back(count - 1);
        owners.push_back(p.owner);
      }
    }
    wanted.insert(wanted.end(), kept.begin(), kept.end());
    auto hidden = model_->llm().forward(at::cat(rows), sequences, wanted);
    const auto decided = std::ssize(owners);
    auto logits = model_->llm().logits(hidden.narrow(0, 0, decided)).to(at::kCPU);
    for (auto* s : keepers) s->duplex->reply.clear();
    for (auto i = std::size_t{0}; i < keepers.size(); ++i)
      keepers[i]->duplex->reply.push_back(hidden.narrow(0, decided + static_cast<std::int64_t>(i), 1));
    for (auto i = std::size_t{0}; i < owners.size(); ++i) {
      owners[i]->hidden = hidden.narrow(0, static_cast<std::int64_t>(i), 1);
      owners[i]->logits = logits[static_cast<std::int64_t>(i)];
    }
  };
  auto done = run_isolated(std::move(parts), call,
                           [this](const part& p, const char* what) { fail(*p.owner, failure::inference, what); });
  std::vector<session*> drawing;
  for (const auto& p : done) guarded(*p.owner, [&] { fed(*p.owner, p.rows.size(0), p.wanted, drawing); });
  draw(drawing);
}

/// `rows` of a session went through the model; `drawing` collects who needs a token drawn.
void omni_engine::fed(session& s, std::int64_t rows, bool wanted, std::vector<session*>& drawing) {
  if (s.at == stage::prefill) {
    s.rows_done += rows;
    if (s.rows_done < s.rows.size(0)) return;
    s.rows.reset();
    prefilled(s);
  } else if (s.duplex) {
    if (s.duplex->decoder.fed() && s.duplex->speech) s.duplex->reply.push_back(s.hidden);
  } else if (s.chat->speaks) {
    s.chat->hidden.push_back(s.hidden);
  }
  if (!wanted) return;
  if (s.duplex && s.duplex->decoder.next() != duplex::wants::draw)
    settle(s);
  else
    drawing.push_back(&s);
}

/// A session's rows are in its cache.
void omni_engine::prefilled(session& s) {
  s.prefilled = engine_clock::now();
  switch (s.why) {
  case purpose::prompt: prompt_fed(s); break;
  case purpose::unit:
    if (s.duplex->unit->replay) {
      words_replayed(s);
      break;
    }
    s.at = stage::decode;
    s.duplex->decoder.begin(s.duplex->force_listen);
    break;
  case purpose::turn: s.at = stage::decode; break;
  case purpose::close_unit: close_unit(s); break;
  case purpose::slide: slide_fed(s); break;
  }
}

/// Rows of a batch are drawn in parallel: each has its own chance and memory.
void omni_engine::draw(std::vector<session*>& sessions) {
  std::vector<std::string> errors(sessions.size());
  at::parallel_for(0, std::ssize(sessions), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      try {
        sessions[i]->duplex ? decide(*sessions[i]) : answer(*sessions[i]);
      } catch (const std::exception& e) {
        errors[i] = e.what();
      }
    }
  });
  for (auto i = std::size_t{0}; i < sessions.size(); ++i) {
    auto& s = *sessions[i];
    if (!errors[i].empty()) {
      fail(s, failure::inference, errors[i]);
      continue;
    }
    guarded(s, [&] {
      if (s.duplex) {
        s.duplex->drawn.push_back(s.token);
        s.duplex->decoder.drawn(s.token);
      }
      settle(s);
    });
  }
}

/// A token was drawn, or none is needed: what the session does with it.
void omni_engine::settle(session& s) {
  if (s.duplex) {
    auto& decoder = s.duplex->decoder;
    if (decoder.next() == duplex::wants::nothing)
      finish_unit(s);
    else
      s.token = decoder.token();
    return;
  }
  auto& c = *s.chat;
  c.drawn.push_back(s.token);
  c.answer->drawn(s.token, answer_ids_.terminators);
  auto full = s.cache.length() + 1 > options_.info.context_tokens;
  auto over = c.answer->finished() || full;
  if (full) c.answer->end();
  if (auto text = c.answer->take_text(); !text.empty()) {
    c.text += text;
    tell_words(s, std::move(text));
  }
  if (over) c.reason = c.answer->complete() ? finish::turn_end : finish::length;
  if (!c.speaks) {
    if (over) finish_turn(s, c.reason);
    return;
  }
  if (over) s.at = stage::idle;
  group_words(s, over);
}

/// The session's prompt is in its cache and its voice is there.
void omni_engine::begin_talk(session& s) {
  s.at = stage::idle;
  out_(opened{s.id, static_cast<int>(s.cache.length()), s.prompt_usage, s.seed});
  next_job(s);
}

void omni_engine::next_job(session& s) {
  if (s.duplex)
    while (s.idle() && !s.duplex->waiting.empty()) start_unit(s);
  if (s.chat)
    while (s.idle() && !s.chat->waiting.empty()) start_turn(s);
}

/// What the session was doing came to nothing; it is as before and goes on, unless it was not open yet.
void omni_engine::fail(session& s, failure kind, const std::string& message) {
  s.rows.reset();
  s.kept_rows.clear();
  s.clips.clear();
  forget_pictures(s);
  s.at = s.speech_at = stage::idle;
  if (voices_ && std::exchange(s.voice_awaited, false)) voices_->forget(s.id);
  if (s.duplex && s.duplex->unit) {
    auto& d = *s.duplex;
    if (d.before->speech) d.speech->restore(std::move(*d.before->speech));
    s.go_on_from(d.before->chance);
    d.reply.clear();
    d.told.reset();
    auto number = d.unit->unit;
    s.cache.truncate(d.before->cache_length);
    d.encoder.length = d.before->encoder_length;
    d.stream = std::move(d.before->stream);
    d.intake = std::move(d.before->intake);
    d.decoder = std::move(d.before->decoder);
    d.history.resize(d.before->history);
    d.tail = std::move(d.before->tail);
    d.before.reset();
    d.unit.reset();
    refuse(s.id, number, kind, message);
    next_job(s);
  } else if (s.chat && s.chat->turn) {
    auto number = s.chat->turn->turn;
    s.go_on_from(s.chat->before);
    forget_turn(s);
    refuse(s.id, number, kind, message);
    next_job(s);
  } else {
    auto id = s.id;
    end(id);
    refuse(id, 0, kind, message);
  }
}

} // namespace parley::inference
