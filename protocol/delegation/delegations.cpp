#include "protocol/delegation/delegations.hpp"

#include "base/assert.hpp"
#include "protocol/json/writer.hpp"

#include <algorithm>
#include <utility>

namespace parley::protocol {
namespace {

using conversation::role;
using conversation::text_message;
using conversation::tool_call;

constexpr std::size_t most_argument_bytes = 1u << 10; ///< longer arguments are not repeated to the model
constexpr std::size_t most_offer_bytes = 16u << 10;   ///< a third of what a chat's context holds
constexpr std::string_view no_answer = "There is no result: nobody answered in time.";

auto with_id(std::string_view id) {
  return [id](const auto& each) { return each.call.id == id; };
}

} // namespace

bool fit_to_judge(const std::vector<conversation::tool>& offered) {
  std::size_t bytes = 0;
  for (const auto& each : offered) bytes += each.signature.size();
  return bytes <= most_offer_bytes;
}

std::string words_of(const tool_call& call) {
  std::string out = "<tool_call>\n{\"name\": ";
  json::append_string(call.name, out);
  out += ", \"arguments\": ";
  out += call.arguments.empty() || call.arguments.size() > most_argument_bytes ? "{}" : call.arguments;
  return out + "}\n</tool_call>";
}

bool delegations::is_under_way(const tool_call& call) const {
  return std::any_of(calls_.begin(), calls_.end(), [&](const open_call& each) {
    return each.call.name == call.name && each.call.arguments == call.arguments;
  });
}

void delegations::begin(tool_call call, time_point now) {
  PARLEY_ASSERT(has_room() && !call.id.empty(), "a call begins when there is room for it, and has an id");
  calls_.push_back({std::move(call), now + terms_.patience});
}

bool delegations::resolve(std::string_view id, std::string result, time_point now) {
  const auto found = std::find_if(calls_.begin(), calls_.end(), with_id(id));
  if (found == calls_.end()) return false;
  results_.push_back({std::move(found->call), std::move(result), now});
  calls_.erase(found);
  return true;
}

bool delegations::cancel(std::string_view id) {
  return std::erase_if(calls_, with_id(id)) > 0;
}

std::vector<std::string> delegations::expire(time_point now) {
  std::vector<std::string> over;
  for (const auto& each : calls_)
    if (each.until <= now) over.push_back(each.call.id);
  for (const auto& id : over) resolve(id, std::string(no_answer), now);
  return over;
}

std::optional<time_point> delegations::next_deadline() const {
  const auto first =
      std::min_element(calls_.begin(), calls_.end(), [](const auto& a, const auto& b) { return a.until < b.until; });
  return first == calls_.end() ? std::nullopt : std::optional(first->until);
}

std::vector<text_message> delegations::tell(const moment& is, time_point now) {
  if (results_.empty() || is.model_speaks) return {};
  auto& next = results_.front();
  if (is.user_speaks && now < next.came + most_polite) return {};
  std::vector<text_message> out;
  out.push_back({role::assistant, words_of(next.call)});
  out.push_back({role::tool, std::move(next.result)});
  results_.pop_front();
  return out;
}

} // namespace parley::protocol
