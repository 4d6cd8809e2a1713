#include "protocol/codec/tool_results.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace parley::protocol {
namespace {

using conversation::message;
using conversation::role;
using conversation::tool_call;

constexpr std::size_t shown_bytes = 64; ///< of an id, in a message about it

class run_of_results {
public:
  /// `first`: the index of the first result.
  run_of_results(field_reader& in, const field& list, std::size_t first, std::span<const tool_call> calls,
                 std::span<const std::string> ids)
      : in_(in), list_(list), first_(first), calls_(calls), ids_(ids), result_of_(calls.size()) {}

  /// For each call, which of the results is its own. Of no use if something has failed.
  std::vector<std::optional<std::size_t>> assign() {
    for (std::size_t at = 0; at < ids_.size(); ++at)
      if (!ids_[at].empty()) assign_named(at);
    for (std::size_t at = 0; at < ids_.size(); ++at)
      if (ids_[at].empty()) assign_next(at);
    check_whole();
    return std::move(result_of_);
  }

private:
  std::string path(std::size_t message) const { return list_.path + "[" + std::to_string(message) + "]"; }
  std::string path_of_id(std::size_t result) const { return path(first_ + result) + ".tool_call_id"; }
  void fail(const std::string& where, std::string_view what) { in_.fail(error_code::invalid_payload, where, what); }

  void assign_named(std::size_t at) {
    std::optional<std::size_t> other;
    for (std::size_t call = 0; call < calls_.size(); ++call) {
      if (calls_[call].id != ids_[at]) continue;
      if (!result_of_[call]) {
        result_of_[call] = at;
        return;
      }
      other = result_of_[call];
    }
    const auto shown = "'" + ids_[at].substr(0, shown_bytes) + "'";
    if (other)
      fail(path_of_id(at), "Duplicate value for 'tool_call_id' of " + shown + ", in messages[" +
                               std::to_string(first_ + *other) + "] and messages[" + std::to_string(first_ + at) +
                               "].");
    else
      fail(path_of_id(at), "None of the 'tool_calls' before this result has the id " + shown + ".");
  }

  void assign_next(std::size_t at) {
    const auto next = std::find(result_of_.begin(), result_of_.end(), std::nullopt);
    if (next == result_of_.end()) return fail(path(first_ + at), "there are more results than calls");
    *next = at;
  }

  /// Calls without any result are let be: their conversation went on without them.
  void check_whole() {
    if (ids_.empty()) return;
    std::string without;
    for (std::size_t call = 0; call < calls_.size(); ++call) {
      if (result_of_[call]) continue;
      without += without.empty() ? "" : ", ";
      without +=
          calls_[call].id.empty() ? "number " + std::to_string(call + 1) : calls_[call].id.substr(0, shown_bytes);
      if (without.size() > 4 * shown_bytes) break;
    }
    if (!without.empty())
      fail(path(first_ - 1) + ".tool_calls",
           "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
           "'tool_call_id'. The following tool_call_ids did not have response messages: " +
               without);
  }

  field_reader& in_;
  const field& list_;
  const std::size_t first_;
  std::span<const tool_call> calls_;
  std::span<const std::string> ids_;
  std::vector<std::optional<std::size_t>> result_of_;
};

} // namespace

void order_results(field_reader& in, const field& from, const std::vector<std::string>& ids,
                   std::vector<message>& all) {
  for (std::size_t at = 0; at < all.size() && !in.failed(); ++at) {
    if (all[at].from == role::tool)
      return in.fail(error_code::invalid_payload, from.path + "[" + std::to_string(at) + "].role",
                     "messages with role 'tool' must be a response to a preceding message with 'tool_calls'");
    if (all[at].calls.empty()) continue;
    const auto first = at + 1;
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = std::find_if(begin, all.end(), [](const message& each) { return each.from != role::tool; });
    const auto count = static_cast<std::size_t>(end - begin);
    const auto order = run_of_results(in, from, first, all[at].calls, std::span(ids).subspan(first, count)).assign();
    if (in.failed()) return;
    std::vector<message> results(std::make_move_iterator(begin), std::make_move_iterator(end));
    for (std::size_t call = 0; call < count; ++call)
      begin[static_cast<std::ptrdiff_t>(call)] = std::move(results[order[call].value_or(call)]);
    at += count;
  }
}

} // namespace parley::protocol
