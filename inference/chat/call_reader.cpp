#include "inference/chat/call_reader.hpp"

#include "inference/decoding/partial_match.hpp"

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
      searched_ = 0;
      in_string_ = escaped_ = endless_ = false;
      scanner_ = {};
    }
    const auto end = find_end();
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

/// Where the call ends; npos = not yet. Its mark may stand in a string of the call. Outside of strings no JSON has a `<`,
/// so the first one there decides, and no byte is looked at twice.
std::size_t call_reader::find_end() {
  for (; !endless_ && searched_ < waiting_.size(); ++searched_) {
    const auto c = waiting_[searched_];
    if (in_string_) {
      if (!std::exchange(escaped_, !escaped_ && c == '\\') && c == '"') in_string_ = false;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '<') {
      const auto rest = std::string_view(waiting_).substr(searched_, call_end.size());
      if (rest.size() < call_end.size() && call_end.starts_with(rest)) break; // the rest of the mark may follow
      if (rest == call_end && is_call(std::string_view(waiting_).substr(0, searched_))) return searched_;
      endless_ = true;
    }
  }
  return std::string::npos;
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
