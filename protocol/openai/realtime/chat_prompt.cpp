#include "protocol/openai/realtime/chat_prompt.hpp"

#include "protocol/chat_budget.hpp"
#include "protocol/codec/tool_codec.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/media/base64.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::protocol::openai::realtime {
namespace {

constexpr int default_answer_tokens = 1024;
constexpr std::size_t most_messages = 200; ///< chat takes 256
constexpr std::size_t most_views = 4;      ///< of what a camera saw
constexpr std::size_t most_calls = 128;    ///< in one message
constexpr std::size_t most_picture_bytes =
    item_limits{}.picture_bytes; ///< as in a conversation; the same one counts each time
constexpr std::string_view not_kept = "(spoken)";
constexpr std::string_view not_shown = "(a picture)";
constexpr std::string_view no_result = "(no result yet)";

role role_of(const item& one) {
  if (one.kind == item_kind::function_call_output) return role::user;
  if (one.kind == item_kind::function_call || one.role == item_role::assistant) return role::assistant;
  return one.role == item_role::system ? role::system : role::user;
}

/// For each call in a context its result, and whether an item is such a result. Results without their call are none.
struct results {
  explicit results(const std::vector<kept_item>& context) : of(context.size()), told(context.size()) {
    std::vector<std::size_t> open; // calls without a result so far
    for (std::size_t at = 0; at < context.size(); ++at) {
      const auto& one = *context[at];
      if (one.kind == item_kind::function_call) open.push_back(at);
      if (one.kind != item_kind::function_call_output) continue;
      const auto call = std::find_if(open.rbegin(), open.rend(),
                                     [&](std::size_t each) { return context[each]->call_id == one.call_id; });
      if (call == open.rend()) continue;
      of[*call] = &one;
      told[at] = true;
      open.erase(std::next(call).base());
    }
    unanswered = open.size();
  }

  std::vector<const item*> of; ///< null = there is none
  std::vector<bool> told;      ///< with its call
  std::size_t unanswered = 0;  ///< calls
};

/// The messages of a chat turn: items of one speaker in a row make one message. The results of calls follow their calls, in
/// the same order, whenever they came.
class message_list {
public:
  explicit message_list(std::string_view instructions) { add_text(role::system, instructions); }

  void add(const std::vector<kept_item>& context) {
    const results known(context);
    for (std::size_t at = 0; at < context.size(); ++at) {
      const auto& one = *context[at];
      if (one.kind == item_kind::function_call) {
        if (open_results_.size() == most_calls) tell_results();
        add_call(one, known.of[at]);
        continue;
      }
      tell_results();
      if (one.kind == item_kind::message)
        for (const auto& part : one.content) add(role_of(one), part);
      else if (!known.told[at])
        add_text(role::user, one.payload);
    }
    tell_results();
  }

  void add_text(role who, std::string_view text) {
    if (!text.empty()) content_of(who).emplace_back(text_item{std::string(text)});
  }

  std::optional<role> last_role() const {
    return messages_.empty() ? std::nullopt : std::optional(messages_.back().from);
  }

  std::vector<message> take() { return std::move(messages_); }

private:
  void add_call(const item& one, const item* result) {
    if (open_results_.empty() && last_role() != role::assistant) messages_.push_back({role::assistant, {}});
    messages_.back().calls.push_back({"", one.name, one.payload});
    open_results_.push_back(result != nullptr ? std::string_view(result->payload) : no_result);
  }

  /// Of the calls since the last time.
  void tell_results() {
    for (const auto output : std::exchange(open_results_, {}))
      messages_.push_back({role::tool, {text_item{std::string(output)}}});
  }

  void add(role who, const item_part& part) {
    if (part.picture && who == role::user) {
      content_of(who).emplace_back(image_item{part.picture});
    } else if (part.sound && who == role::user) {
      content_of(who).emplace_back(audio_item{std::make_shared<const std::vector<float>>(to_floats(*part.sound))});
    } else if (part.type == item_part::kind::input_audio && part.text.empty()) {
      add_text(who, not_kept);
    } else if (part.type == item_part::kind::input_image) {
      add_text(who, not_shown);
    } else {
      add_text(who, part.text);
    }
  }

  /// The content of this speaker's message, ready for its next part.
  std::vector<content_item>& content_of(role who) {
    if (messages_.empty() || messages_.back().from != who || !messages_.back().calls.empty())
      messages_.push_back({who, {}});
    return messages_.back().content;
  }

  std::vector<message> messages_;
  std::vector<std::string_view> open_results_; ///< of the last message's calls
};

/// Without what a camera saw, except the newest `most` views.
std::vector<kept_item> without_old_views(std::vector<kept_item> context, std::size_t most) {
  std::vector<kept_item> kept;
  for (auto one = context.rbegin(); one != context.rend(); ++one) {
    const bool view = is_camera_view(**one);
    if (view && most == 0) continue;
    if (view) --most;
    kept.push_back(std::move(*one));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

/// The items that go into the turn: the newest. A call without a result takes two messages.
std::vector<kept_item> chosen(std::vector<kept_item> context) {
  auto kept = without_old_views(std::move(context), most_views);
  if (kept.size() > most_messages) kept.erase(kept.begin(), kept.end() - most_messages);
  if (const auto all = kept.size() + results(kept).unanswered; all > most_messages)
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(all - most_messages));
  return kept;
}

/// What a turn takes up, judged as chat does before anything is written.
class turn_size {
public:
  void add_text(std::string_view text) {
    if (text.empty()) return;
    const auto written = json::written_bytes(text);
    bytes_ += written;
    note(budget_.add_items(1));
    note(budget_.add_text(written));
  }

  void add(const item& one) {
    const bool users = role_of(one) == role::user;
    add_text(one.payload);
    for (const auto& part : one.content) {
      if (users && part.picture)
        add_picture(part.picture_bytes);
      else if (users && part.sound)
        add_sound(part.sound->size());
      else
        add_text(part.text);
    }
  }

  std::size_t bytes() const { return bytes_; }
  std::optional<std::string>& excess() { return excess_; }

private:
  void add_picture(std::size_t written) {
    bytes_ += written;
    picture_bytes_ += written;
    note(budget_.add_items(1));
    note(budget_.add_pictures(1));
    if (picture_bytes_ > most_picture_bytes) note("more than 32 MiB of pictures in one turn");
  }

  void add_sound(std::size_t samples) {
    bytes_ += base64::encoded_size(samples * sizeof(float));
    note(budget_.add_items(1));
    note(budget_.add_seconds(static_cast<double>(samples) / speech::model_input_rate));
  }

  void note(std::optional<std::string> what) {
    if (!excess_) excess_ = std::move(what);
  }

  chat_budget budget_;
  std::size_t bytes_ = 0;
  std::size_t picture_bytes_ = 0;
  std::optional<std::string> excess_;
};

bool only_small_pictures(const std::vector<kept_item>& context) {
  bool any = false;
  for (const auto& one : context) {
    for (const auto& part : one->content) {
      if (part.picture && !part.low_detail) return false;
      any = any || part.picture;
    }
  }
  return any;
}

std::string_view speaker(const item& one) {
  const auto who = role_of(one);
  return who == role::user ? "User: " : who == role::assistant ? "You: " : "Note: ";
}

} // namespace

chat_turn::chat_turn(response_request request, std::vector<kept_item> context,
                     std::shared_ptr<const speech::voice_map> voices, std::string voice)
    : request_(std::move(request)), context_(chosen(std::move(context))), voices_(std::move(voices)),
      voice_(std::move(voice)) {
  turn_size size;
  size.add_text(request_.instructions);
  for (const auto& one : context_) size.add(*one);
  bytes_ = size.bytes();
  excess_ = std::move(size.excess());
}

namespace {

/// The functions of a response, which were checked when the client sent them: here they only have to be read.
std::optional<error> read_functions(const response_request& request, chat_append_event& into) {
  const auto tools = json::scan(request.tools), choice = json::scan(request.tool_choice);
  field_reader in;
  in.trust_schemas();
  protocol::read_tools(in, {json::root(tools), "input.tools"}, {json::root(choice), "input.tool_choice"}, into);
  if (in.failed()) return in.failure().value();
  into.names_tools = true;
  into.call_pieces = true;
  into.tools_as_written = request.tools;
  into.tool_choice_as_written = request.tool_choice;
  return std::nullopt;
}

} // namespace

std::vector<conversation::tool> offered_functions(std::string_view tools) {
  constexpr std::size_t most_tools = 128;
  std::vector<conversation::tool> out;
  const auto list = json::scan(tools);
  for (const auto& each : json::elements(json::root(list), most_tools)) {
    const auto type = json::member(each, "type");
    if (type.present() && !(type.is(json::kind::string) && json::means(type, "function"))) continue;
    field_reader in;
    in.trust_schemas();
    auto read = read_tool(in, {each, "tools"});
    if (!in.failed()) out.push_back(std::move(read));
  }
  return out;
}

protocol::result<chat_append_event> chat_turn::make() const {
  message_list messages(request_.instructions);
  messages.add(context_);
  if (messages.last_role() != role::user && messages.last_role() != role::tool)
    messages.add_text(role::user, context_.empty() ? "Please begin the conversation." : "Please go on.");

  chat_append_event out;
  out.messages = messages.take();
  out.max_new_tokens = request_.max_output_tokens > 0 ? request_.max_output_tokens : default_answer_tokens;
  if (request_.tools != "[]")
    if (auto why = read_functions(request_, out)) return tl::unexpected(*std::move(why));
  if (only_small_pictures(context_)) out.max_slice_nums = 1;
  out.tts = request_.audible;
  if (out.tts) out.tts_voice = speech::voice_named(voices_.get(), voice_);
  return out;
}

namespace {

std::string call_in_words(const item& call) {
  return call.name + "(" + call.payload + ")";
}

/// What a call or its result says. `call`: whose result it is, if that has to be said.
std::string tool_in_words(const item& one, const item* call) {
  if (one.kind == item_kind::function_call) return call_in_words(one);
  return call == nullptr ? one.payload : call_in_words(*call) + ": " + one.payload;
}

/// The call whose result the item at `at` is, unless it stands right before it.
const item* call_of(const item_list& items, std::size_t at) {
  if (items[at].kind != item_kind::function_call_output) return nullptr;
  for (auto before = at; before-- > 0;) {
    const auto& one = items[before];
    if (one.kind == item_kind::function_call && one.call_id == items[at].call_id)
      return before + 1 == at ? nullptr : &one;
  }
  return nullptr;
}

} // namespace

text_message item_in_words(const item_list& items, std::size_t at) {
  const auto& one = items[at];
  text_message out;
  out.from = one.kind == item_kind::function_call_output ? role::tool : role_of(one);
  out.text = tool_in_words(one, call_of(items, at));
  for (const auto& part : one.content) {
    if (!out.text.empty()) out.text += '\n';
    if (part.type == item_part::kind::input_image)
      out.text += not_shown;
    else
      out.text += part.text.empty() ? not_kept : std::string_view(part.text);
  }
  return out;
}

std::string in_words(const item_list& context, std::size_t most_bytes) {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  bool viewed = false;
  for (std::size_t at = context.size(); at-- > 0;) {
    const auto& one = context[at];
    if (is_camera_view(one) && std::exchange(viewed, true)) continue;
    std::string line(speaker(one));
    for (const auto& part : one.content) {
      if (part.type == item_part::kind::input_image)
        line.append(not_shown) += ' ';
      else
        line += (part.text.empty() ? std::string(not_kept) : part.text) + " ";
    }
    line += tool_in_words(one, call_of(context, at));
    bytes += line.size();
    if (bytes > most_bytes) break;
    lines.push_back(std::move(line));
  }
  std::string out;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) out += *line + "\n";
  return out;
}

} // namespace parley::protocol::openai::realtime
