#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace parley::base {

/// Writes lines to a descriptor and never waits for whoever reads them: a full pipe or a stopped terminal must not stop
/// the threads that log. What finds no room is kept and goes before the next line. Not thread-safe.
class line_output {
public:
  /// `most_waiting`: how many bytes are kept while nobody reads; lines beyond are left out.
  explicit line_output(int descriptor, std::size_t most_waiting = std::size_t{1} << 20)
      : descriptor_(descriptor), most_waiting_(most_waiting) {}

  /// `line` ends with its line break. False if it is left out.
  bool write(std::string_view line);

  /// How many lines have been left out since the last call that said so, if there is room again for a word on it.
  std::size_t take_missing();

  /// Waits until all is written, but not longer than `longest` without any progress.
  void finish(std::chrono::milliseconds longest);

private:
  bool has_room(std::size_t bytes) const { return waiting_.size() + bytes <= most_waiting_; }
  void write_some(std::chrono::milliseconds patience);

  const int descriptor_;
  const std::size_t most_waiting_;
  std::string waiting_;
  std::size_t missing_ = 0;
};

} // namespace parley::base
