#include "base/assert.hpp"
#include "inference/engine/stages.hpp"
#include "inference/kernels/transfer.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <utility>

// The language model's passes: rows in, tokens out.
namespace parley::inference {

/// One task's part of a pass.
struct stages::llm_part {
  task* by;
  std::int64_t rows; ///< prefill rows; 0 = feed its last decoded token
  bool wanted;       ///< the last row's logits are wanted
  bool kept;         ///< the hidden states of its `kept` rows are wanted

  llm::kv_cache& cache() const { return by->owner().cache; }
};

/// A task that wants a token; `trouble` is set if none could be sampled.
struct stages::drawing {
  task* by;
  std::exception_ptr trouble;
  bool done = false; ///< else it takes the whole row
};

std::vector<stages::llm_part> stages::llm_parts(std::span<const schedule::piece> prefill,
                                                std::span<const session_id> decode) {
  std::vector<llm_part> parts;
  parts.reserve(prefill.size() + decode.size());
  for (auto* t : sessions_.needing(stage::decode, decode)) parts.push_back({t, 0, true, false});
  for (const auto& piece : prefill) {
    auto* t = sessions_.needing(stage::prefill, piece.session);
    if (!t) continue;
    const auto& feed = t->feed();
    const auto rows = std::min(piece.rows, feed.left());
    parts.push_back({t, rows, feed.wants_logits && rows == feed.left(), !feed.kept.empty()});
  }
  return parts;
}

void stages::slide(std::span<const schedule::piece> plan) {
  for (const auto& piece : plan)
    if (auto* t = sessions_.needing(stage::slide, piece.session))
      sessions_.step(*t, [&](task& u) { u.slide(piece.rows); });
}

void stages::run_llm(std::span<const schedule::piece> prefill, std::span<const session_id> decode) {
  auto parts = llm_parts(prefill, decode);
  std::vector<drawing> draws;
  draws.reserve(parts.size()); // once the rows are in the caches, only a task's own step may still fail
  auto call = [this](std::span<llm_part> batch) {
    std::vector<std::int64_t> lengths;
    for (const auto& p : batch) lengths.push_back(p.cache().length());
    try {
      forward(batch);
    } catch (...) {
      for (auto i = std::size_t{0}; i < batch.size(); ++i) batch[i].cache().truncate(lengths[i]);
      throw;
    }
  };
  for (const auto& p : sessions_.isolated(std::move(parts), call))
    sessions_.step(*p.by, [&](task& t) {
      if (t.needs() == stage::prefill) {
        auto& feed = t.feed();
        feed.done += p.rows;
        if (feed.left() > 0) return;
        feed.rows.reset();
        t.on_prefilled();
      } else {
        t.on_token_fed();
      }
      if (p.wanted && t.wants_token()) draws.push_back({&t, nullptr, false});
    });
  draw(draws);
}

/// Calls the model once for the whole batch. If it throws, caches may have grown.
void stages::forward(std::span<llm_part> batch) {
  std::vector<token_id> tokens;
  for (const auto& p : batch)
    if (p.rows == 0) tokens.push_back(p.by->feed().token);
  std::vector<at::Tensor> rows; // of prefills, which follow the tokens
  std::vector<llm::sequence_rows> sequences;
  std::vector<std::int64_t> wanted, kept;
  std::vector<llm_feed*> deciders, keepers;
  auto count = std::int64_t{0};
  for (const auto& p : batch) {
    auto& feed = p.by->feed();
    if (p.kept) {
      PARLEY_ASSERT(p.rows == feed.rows.size(0), "rows whose hidden states are wanted go in one call");
      for (auto row : feed.kept) {
        kept.push_back(count + row);
        keepers.push_back(&feed);
      }
    }
    if (p.rows > 0) rows.push_back(feed.rows.narrow(0, feed.done, p.rows));
    PARLEY_ASSERT(p.rows > 0 || rows.empty(), "single tokens come before prefills");
    sequences.push_back({&p.cache(), std::max(p.rows, std::int64_t{1})});
    count += sequences.back().rows;
    if (p.wanted) {
      wanted.push_back(count - 1);
      deciders.push_back(&feed);
    }
  }
  wanted.insert(wanted.end(), kept.begin(), kept.end());
  const auto prefilled = rows.empty() ? at::Tensor() : rows.size() == 1 ? rows.front() : at::cat(rows);
  const auto hidden = with_.model.llm().forward({tokens, prefilled}, sequences, wanted);
  const auto decided = std::ssize(deciders);
  std::vector<llm::short_row> listed;
  at::Tensor logits;
  if (decided > 0) logits = with_.model.llm().logits(hidden.narrow(0, 0, decided));
  if (decided > 0 && with_.shortlist) listed = with_.shortlist->of(logits);
  for (auto* feed : keepers) feed->kept_hidden.clear();
  for (auto i = std::size_t{0}; i < keepers.size(); ++i)
    keepers[i]->kept_hidden.push_back(hidden.narrow(0, decided + static_cast<std::int64_t>(i), 1));
  for (auto i = std::size_t{0}; i < deciders.size(); ++i) {
    deciders[i]->hidden = hidden.narrow(0, static_cast<std::int64_t>(i), 1);
    deciders[i]->logits = logits[static_cast<std::int64_t>(i)];
    deciders[i]->listed.reset();
    if (!listed.empty()) deciders[i]->listed = std::move(listed[i]);
  }
}

/// Each row has its own random stream and memory. On a device, first from what it
/// has sent of each row; a whole row is downloaded only if that does not suffice.
void stages::draw(std::span<drawing> rows) {
  auto draw_some = [&] {
    for (auto& row : rows) {
      auto& feed = row.by->feed();
      if (row.done) continue;
      try {
        auto token = feed.listed ? row.by->draw_listed(*std::exchange(feed.listed, std::nullopt))
                     : feed.logits.is_cpu()
                         ? std::optional(row.by->draw(
                               {feed.logits.mutable_data_ptr<float>(), static_cast<std::size_t>(feed.logits.numel())}))
                         : std::nullopt;
        row.done = token.has_value();
        if (token) feed.token = *token;
      } catch (...) {
        row.trouble = std::current_exception();
        row.done = true;
      }
    }
  };
  std::exception_ptr nobody_drew;
  try {
    draw_some();
    if (!std::ranges::all_of(rows, &drawing::done)) {
      download_rows(rows);
      draw_some();
    }
  } catch (...) {
    nobody_drew = std::current_exception();
  }
  for (const auto& r : rows)
    sessions_.step(*r.by, [&](task& t) {
      if (nobody_drew) std::rethrow_exception(nobody_drew);
      if (r.trouble) std::rethrow_exception(r.trouble);
      t.on_token_drawn();
    });
}

/// The rows that have drawn nothing yet, in one copy.
void stages::download_rows(std::span<drawing> rows) {
  std::vector<at::Tensor> logits;
  std::vector<llm_feed*> feeds;
  for (const auto& r : rows)
    if (!r.done) {
      feeds.push_back(&r.by->feed());
      logits.push_back(feeds.back()->logits);
    }
  const auto here = download(at::stack(logits));
  for (std::size_t i = 0; i < feeds.size(); ++i) feeds[i]->logits = here[static_cast<std::int64_t>(i)];
}

} // namespace parley::inference
