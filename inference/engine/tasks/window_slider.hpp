#pragma once

#include "inference/engine/tasks/duplex_session.hpp"
#include "inference/llm/cache_slide.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace parley::inference {

/// Carries out what the window of a session has decided, for its running task.
class window_slider {
public:
  /// `of` must outlive this.
  void begin(duplex_session& of, duplex::window_slide what) {
    slide_.emplace(of.cache, what.keep, std::ssize(what.insert), std::move(what.moves), what.length(),
                   of.with.model.llm().positions());
    insert_ = std::move(what.insert);
  }

  /// Rows are being moved or inserted.
  bool under_way() const { return slide_.has_value(); }

  std::int64_t layers_left() const { return slide_ ? slide_->left() : 0; }
  int pages() const { return slide_ ? slide_->pages() : 0; }

  /// Moves the rows of that many layers; true = of all.
  bool advance(std::int64_t layers) {
    slide_->advance(layers);
    return slide_->left() == 0;
  }

  /// What to feed once all rows are moved.
  const std::vector<token_id>& insert() const { return insert_; }

  /// All rows are there, and what is inserted was fed.
  void end(duplex_session& of) {
    if (!insert_.empty()) of.cache.close_gap();
    insert_.clear();
    slide_.reset();
  }

private:
  std::optional<llm::cache_slide> slide_;
  std::vector<token_id> insert_;
};

} // namespace parley::inference
