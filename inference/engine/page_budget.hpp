#pragma once

#include "inference/vocabulary.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference {

/// A session that takes part in a pass of the language model.
struct page_claim {
  session_id session = 0;
  std::uint64_t arrival = 0; ///< sessions are numbered as they open
  int pages = 0;             ///< pages of the KV pool that it takes in this pass, at least
};

/// The sessions that may not take part in this pass, because the pages that are free are needed by older sessions.
/// Oldest first; once one of them gets nothing, no younger one does, so that nobody overtakes. A session that takes no
/// page always takes part. Pure.
std::vector<session_id> without_pages(std::span<const page_claim> claims, int free_pages);

/// How many sessions a KV pool can carry if not all of them need their whole context: another session is admitted if
/// it can live up to the limit while each of the others ends as long as sessions usually do. What is usual is learned
/// from sessions that have ended; at first it is the limit.
class page_forecast {
public:
  /// `pages`: of the pool. `limit`: pages of a session whose context is full, 1 to `pages`.
  page_forecast(int pages, int limit) : pages_(pages), limit_(limit), usual_(limit) {}

  /// A session has ended that held up to this many pages.
  void ended(int pages);

  /// The open sessions hold this many pages. Returns how many sessions may be open, at least one and at least as many
  /// as are open already.
  int sessions(std::span<const int> held) const;

  /// How many pages a session usually holds at its end.
  double usual() const { return usual_; }

private:
  int pages_, limit_;
  double usual_;
};

} // namespace parley::inference
