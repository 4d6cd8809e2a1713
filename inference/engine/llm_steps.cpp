#include "inference/engine/isolate.hpp"
#include "inference/engine/omni_engine.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>

// The language model's passes: rows in, tokens out.
namespace parley::inference {

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
    std::int64_t rows; ///< of its prefill; 0 = its token
    bool wanted;       ///< its last row's logits
    bool kept;         ///< the hidden states of `kept_rows`
  };
  std::vector<part> parts;
  for (auto* s : still_at(stage::decode, plan.decode)) parts.push_back({s, 0, true, false});
  for (const auto& piece : plan.prefill) {
    auto* s = find(piece.session);
    if (!s || s->at != stage::prefill) continue;
    const auto rows = std::min(piece.rows, s->rows.size(0) - s->rows_done);
    const auto last = s->rows_done + rows == s->rows.size(0);
    const auto known = s->duplex && s->duplex->unit && s->duplex->unit->replay;
    parts.push_back({s, rows, last && !known && (s->why == purpose::unit || s->why == purpose::turn),
                     !s->kept_rows.empty() && s->why == purpose::unit});
  }
  auto run = [this](std::span<part> batch) {
    std::vector<token_id> tokens;
    for (const auto& p : batch)
      if (p.rows == 0) tokens.push_back(p.owner->token);
    const auto embedded = tokens.empty() ? at::Tensor() : model_->llm().embed(tokens);
    std::vector<at::Tensor> rows;
    std::vector<llm::sequence_rows> sequences;
    std::vector<std::int64_t> wanted;
    std::vector<session*> owners, keepers;
    std::vector<std::int64_t> kept;
    auto count = std::int64_t{0}, token = std::int64_t{0};
    for (const auto& p : batch) {
      auto& s = *p.owner;
      for (auto row : p.kept ? s.kept_rows : std::vector<std::int64_t>()) {
        kept.push_back(count + row);
        keepers.push_back(&s);
      }
      rows.push_back(p.rows == 0 ? embedded.narrow(0, token++, 1) : s.rows.narrow(0, s.rows_done, p.rows));
      sequences.push_back({&s.cache, rows.back().size(0)});
      count += rows.back().size(0);
      if (p.wanted) {
        wanted.push_back(count - 1);
        owners.push_back(&s);
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
  auto call = [&run](std::span<part> batch) {
    std::vector<std::int64_t> lengths;
    for (const auto& p : batch) lengths.push_back(p.owner->cache.length());
    try {
      run(batch);
    } catch (...) {
      for (auto i = std::size_t{0}; i < batch.size(); ++i) batch[i].owner->cache.truncate(lengths[i]);
      throw;
    }
  };
  std::vector<session*> drawing;
  drawing.reserve(parts.size()); // once the rows are in the caches, nothing but a session's own step may fail
  auto done = run_isolated(std::move(parts), call,
                           [this](const part& p, const char* what) { fail(*p.owner, failure::inference, what); });
  for (const auto& p : done)
    guarded(*p.owner, [&] { fed(*p.owner, std::max<std::int64_t>(p.rows, 1), p.wanted, drawing); });
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
void omni_engine::draw(const std::vector<session*>& sessions) {
  for (auto* s : sessions) s->trouble = nullptr;
  auto draw_some = [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      auto& s = *sessions[i];
      try {
        s.duplex ? decide(s) : answer(s);
      } catch (...) {
        s.trouble = std::current_exception();
      }
    }
  };
  std::exception_ptr nobody_drew;
  try {
    at::parallel_for(0, std::ssize(sessions), 1, draw_some);
  } catch (...) {
    nobody_drew = std::current_exception();
  }
  for (auto* s : sessions)
    guarded(*s, [&] {
      if (nobody_drew) std::rethrow_exception(nobody_drew);
      if (auto trouble = std::exchange(s->trouble, nullptr)) std::rethrow_exception(trouble);
      if (s->duplex) {
        s->duplex->drawn.push_back(s->token);
        s->duplex->decoder.drawn(s->token);
      }
      settle(*s);
    });
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

} // namespace parley::inference
