#include "inference/chat/call_reader.hpp"

#include "inference/chat/partial_match.hpp"

#include <nlohmann/json.hpp>

namespace parley::inference::chat {
namespace {

using call_json = nlohmann::ordered_json;

/// Where the part of a text that a call may follow begins: white space at its end, and what may become <tool_call>.
std::size_t certain_bytes(std::string_view text) {
  auto end = text.size() - partial_match(text, call_begin);
  while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' ')) --end;
  return end;
}

bool is_call(std::string_view body) {
  return call_json::accept(body);
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \n");
  return from == std::string_view::npos ? std::string_view()
                                        : text.substr(from, text.find_last_not_of(" \n") - from + 1);
}

} // namespace

std::string call_reader::push(std::string_view text) {
  waiting_ += text;
  std::string out;
  for (;;) {
    if (!in_call_) {
      const auto begin = waiting_.find(call_begin);
      const auto certain = certain_bytes(std::string_view(waiting_).substr(0, begin));
      if (begin == std::string::npos) {
        out.append(waiting_, 0, certain);
        waiting_.erase(0, certain);
        break;
      }
      out.append(waiting_, 0, certain);
      waiting_.erase(0, begin + call_begin.size());
      in_call_ = true;
      scanner_ = {};
    }
    // The mark may stand in a string of the call: the call ends at the first one with whole JSON before it.
    auto end = waiting_.find(call_end);
    while (end != std::string::npos && !is_call(std::string_view(waiting_).substr(0, end)))
      end = waiting_.find(call_end, end + 1);
    if (end == std::string::npos) {
      scan_call(waiting_);
      break;
    }
    read_call(std::string_view(waiting_).substr(0, end));
    waiting_.erase(0, end + call_end.size());
    in_call_ = false;
  }
  return out;
}

std::string call_reader::finish() {
  std::string out;
  if (in_call_) {
    read_call(waiting_);
  } else if (calls_.empty() || !trimmed(waiting_).empty()) {
    out = waiting_;
  }
  waiting_.clear();
  in_call_ = false;
  return out;
}

/// Tells what of a call is certain. What may be its end is none of it.
void call_reader::scan_call(std::string_view body) {
  const bool named = !scanner_.name().empty();
  auto fresh = scanner_.scan(body);
  if (scanner_.name().empty() || (named && fresh.empty())) return;
  pieces_.push_back({calls_.size(), named ? std::string() : scanner_.name(), std::move(fresh)});
}

void call_reader::add(std::string name, std::string arguments) {
  pieces_.push_back({calls_.size(), name, arguments});
  calls_.push_back({"", std::move(name), std::move(arguments)});
}

/// What is no JSON is passed on as arguments, if the function's name can be read: clients tell the model themselves.
void call_reader::read_call(std::string_view body) {
  scan_call(body);
  if (!scanner_.name().empty()) {
    calls_.push_back({"", scanner_.name(), scanner_.arguments()});
    return;
  }
  const auto text = trimmed(body);
  const auto call = call_json::parse(text, nullptr, false);
  if (call.is_object() && call.contains("name") && call["name"].is_string()) {
    const auto& arguments = call.contains("arguments") ? call["arguments"] : call_json::object();
    add(call["name"].get<std::string>(), arguments.is_string() ? arguments.get<std::string>() : arguments.dump());
    return;
  }
  constexpr std::string_view opening = R"({"name": ")";
  constexpr std::string_view middle = R"("arguments":)";
  if (!text.starts_with(opening)) return;
  const auto quote = text.find('"', opening.size());
  const auto from = text.find(middle);
  if (quote == std::string_view::npos || from == std::string_view::npos) return;
  add(std::string(text.substr(opening.size(), quote - opening.size())),
      std::string(trimmed(text.substr(from + middle.size()))));
}

} // namespace parley::inference::chat
