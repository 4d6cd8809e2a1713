#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace parley::actors {

/// How much of other gateways' logs is kept. What is too much is refused: of one log, of one sender, whose part is half of
/// all, so that the others' remain, or of all. Not thread-safe. Pure.
class copy_budget {
public:
  /// A log takes at least this much of the disk, and its sender holds a descriptor open with it.
  static constexpr std::size_t least_bytes = 4096;
  static constexpr std::size_t most_logs = 10'000; ///< of one sender

  /// Bytes of one log, and of all.
  copy_budget(std::size_t most_of_one, std::size_t most) : most_of_one_(most_of_one), most_(most) {}

  /// Whether there is room for so many bytes more of this log; if so, they count for the link that it comes over.
  bool add(const std::string& session_id, std::uint64_t link, std::size_t bytes) {
    const auto found = logs_.find(session_id);
    const auto before = found == logs_.end() ? kept{link} : found->second;
    const auto size = before.bytes + bytes;
    const auto more = cost(size) - (found == logs_.end() ? 0 : cost(before.bytes));
    const auto of = senders_.find(link);
    const sender there = of == senders_.end() ? sender{} : of->second;
    if (size > most_of_one_ || all_ + more > most_ || there.bytes + more > most_ / 2) return false;
    if (found == logs_.end() && there.logs >= most_logs) return false;
    count(session_id, link, bytes);
    return true;
  }

  /// The same for a log that is here already, whether there is room or not. Link 0: it comes over none.
  void count(const std::string& session_id, std::uint64_t link, std::size_t bytes) {
    const auto [at, fresh] = logs_.try_emplace(session_id, kept{link});
    auto& of = senders_[at->second.link];
    const auto before = fresh ? 0 : cost(at->second.bytes);
    at->second.bytes += bytes;
    all_ += cost(at->second.bytes) - before;
    of.bytes += cost(at->second.bytes) - before;
    of.logs += fresh ? 1 : 0;
  }

  /// It is gone. Does nothing if it is not here.
  void remove(const std::string& session_id) {
    const auto found = logs_.find(session_id);
    if (found == logs_.end()) return;
    const auto of = senders_.find(found->second.link);
    all_ -= cost(found->second.bytes);
    of->second.bytes -= cost(found->second.bytes);
    if (--of->second.logs == 0) senders_.erase(of);
    logs_.erase(found);
  }

  std::size_t bytes() const { return all_; }

private:
  struct kept {
    std::uint64_t link = 0;
    std::size_t bytes = 0;
  };
  struct sender {
    std::size_t bytes = 0;
    std::size_t logs = 0;
  };
  static std::size_t cost(std::size_t bytes) { return std::max(bytes, least_bytes); }

  const std::size_t most_of_one_;
  const std::size_t most_;
  std::size_t all_ = 0;
  std::map<std::string, kept> logs_;
  std::map<std::uint64_t, sender> senders_;
};

} // namespace parley::actors
