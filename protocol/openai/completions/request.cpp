#include "protocol/openai/completions/request.hpp"

#include "base/utf8.hpp"
#include "protocol/json/document.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/openai/completions/prompt.hpp"
#include "protocol/openai/completions/spoken_id.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::protocol {
namespace {

constexpr int default_answer_tokens = 1024;
constexpr int most_choices = 8;
constexpr int most_logprobs = 20;
constexpr std::size_t most_model_bytes = 256;
constexpr int most_answer_tokens = 4096; ///< docs/protocol.md 3.5

class reader {
public:
  explicit reader(std::shared_ptr<openai_prompt> into)
      : prompt_(std::move(into)), terms_(prompt_->terms), top_{json::root(prompt_->found), {}} {}

  result<openai_request> run() {
    refuse_what_is_not_there();
    read_plain_fields();
    read_messages();
    read_generation();
    prompt_->tools = listed("tools");
    prompt_->tool_choice = listed("tool_choice");
    prompt_->format = listed("response_format");
    read_logprobs();
    terms_.streaming = out_.streaming;
    terms_.call_pieces = out_.streaming && at("tools").at.given();
    terms_.tts = terms_.use_tts_template = out_.sound != sound_format::none;
    if (pictures_ > 0 && small_pictures_ == pictures_) terms_.max_slice_nums = 1;
    if (in_.failed()) return in_.failure();
    out_.prompt = std::move(prompt_);
    return std::move(out_);
  }

private:
  field at(std::string_view name) const { return field_reader::find(top_, {name}); }

  void fail(const field& where, std::string_view what) { in_.fail(error_code::invalid_payload, where.path, what); }

  void refuse_what_is_not_there() {
    const auto functions = at("functions");
    if (functions.at.given() && !is_empty(functions)) fail(functions, "not supported by this server");
  }

  static bool is_empty(const field& list) {
    return list.at.is(json::kind::array) && json::elements(list.at, 1).empty();
  }

  /// What chat has in the same words; an empty list is none.
  json::value listed(std::string_view name) const {
    const auto given = at(name);
    return given.at.given() && !is_empty(given) ? given.at : json::value();
  }

  void read_plain_fields() {
    in_.integer(at("n"), 1, most_choices, out_.choices);
    if (auto model = in_.short_text(at("model"), most_model_bytes)) out_.model = *std::move(model);
    in_.boolean(at("stream"), out_.streaming);
    in_.boolean(field_reader::find(in_.object(at("stream_options")), {"include_usage"}), out_.include_usage);
    const auto modalities = field_reader::find(top_, {"modalities", "output_modalities"});
    bool aloud = false;
    for (const auto& each : json::elements(modalities.at, 16)) {
      std::string kind;
      const auto name = in_.required_text({each, modalities.path}, kind);
      if (name != "text" && name != "audio") fail(modalities, "neither text nor audio");
      aloud = aloud || name == "audio";
    }
    if (aloud) read_sound_format();
  }

  void read_sound_format() {
    const auto format = field_reader::find(in_.object(at("audio")), {"format"});
    std::string scratch;
    const auto name = in_.text(format, scratch).value_or(out_.streaming ? "pcm16" : "wav");
    if (name == "pcm16") {
      out_.sound = sound_format::pcm16;
    } else if (name == "wav" && !out_.streaming) {
      out_.sound = sound_format::wav;
    } else {
      fail(format, out_.streaming ? "only pcm16 is supported with stream" : "only wav and pcm16 are supported");
    }
  }

  void read_generation() {
    terms_.max_new_tokens = default_answer_tokens;
    // The last one is how OpenAI's other APIs spell it.
    for (const auto* name : {"max_tokens", "max_completion_tokens", "max_output_tokens"})
      in_.integer(at(name), 1, field_reader::any, terms_.max_new_tokens);
    terms_.max_new_tokens = std::min(terms_.max_new_tokens, most_answer_tokens);
    in_.number(at("temperature"), 0, 2, terms_.temperature);
    in_.number(at("top_p"), 0, 1, terms_.top_p);
    in_.integer(at("top_k"), 0, field_reader::any, terms_.top_k);
    in_.seed(at("seed"), terms_.seed);
    prompt_->stop = listed("stop");
  }

  void read_logprobs() {
    std::optional<int> most;
    in_.boolean(at("logprobs"), out_.scored);
    in_.integer(at("top_logprobs"), 0, most_logprobs, most);
    if (most && !out_.scored) fail(at("top_logprobs"), "only together with logprobs");
    if (out_.scored) terms_.scored = most.value_or(0);
  }

  void read_messages() {
    const auto messages = in_.require(top_, {"messages"});
    if (in_.failed()) return;
    if (!messages.at.is(json::kind::array)) return fail(messages, "not an array");
    const auto all = json::elements(messages.at, json::max_values);
    prompt_->messages.reserve(all.size());
    for (std::size_t i = 0; i < all.size() && !in_.failed(); ++i)
      read_message(field_reader::element(messages, all[i], i), prompt_->messages.emplace_back());
  }

  void read_message(const field& message, openai_prompt::said& into) {
    if (in_.required_object(message); in_.failed()) return;
    std::string scratch;
    const auto from = in_.require(message, {"role"});
    const auto name = in_.failed() ? std::string_view() : in_.required_text(from, scratch);
    if (in_.failed()) return;
    if (name == "system" || name == "developer") {
      into.from = role::system;
    } else if (name == "assistant") {
      into.from = role::assistant;
      return read_answer(message, into);
    } else if (name == "tool") {
      into.from = role::tool;
      into.call_id = field_reader::find(message, {"tool_call_id"}).at;
    } else if (name != "user") {
      return fail(from, "none of system, user, assistant, tool");
    }
    read_content(in_.require(message, {"content"}), into);
  }

  /// What an assistant said, as this API's answers have it: its words may stand in another member than `content`.
  void read_answer(const field& message, openai_prompt::said& into) {
    const auto calls = field_reader::find(message, {"tool_calls"});
    const bool has_calls = calls.at.given() && !json::elements(calls.at, 1).empty();
    if (has_calls) into.calls = calls.at;
    if (const auto old = field_reader::find(message, {"function_call"}); old.at.given())
      return fail(old, "not supported by this server: use tool_calls");
    const auto content = field_reader::find(message, {"content"});
    if (says_something(content)) {
      read_content(content, into);
    } else if (const auto audio = field_reader::find(message, {"audio"}); audio.at.given()) {
      into.content = spoken_words(in_.required_object(audio));
    } else if (const auto refusal = field_reader::find(message, {"refusal"}); refusal.at.given()) {
      std::string scratch;
      into.content = std::string(in_.required_text(refusal, scratch));
    } else if (content.at.present() && !has_calls) {
      into.content = std::string();
    } else if (!has_calls) {
      in_.require(message, {"content"}); // says what is wrong
    }
  }

  static bool says_something(const field& content) {
    if (!content.at.given() || is_empty(content)) return false;
    return !content.at.is(json::kind::string) || !content.at.raw().empty();
  }

  /// The words of an answer with sound, as it came or by its id alone.
  std::string spoken_words(const field& audio) {
    if (in_.failed()) return {};
    std::string scratch;
    if (const auto words = in_.text(field_reader::find(audio, {"transcript"}), scratch)) return std::string(*words);
    const auto id = in_.require(audio, {"id"});
    if (in_.failed()) return {};
    auto words = words_of_spoken_id(in_.required_text(id, scratch));
    if (!words) fail(id, "no id of an answer of this server; send its transcript");
    return std::move(words).value_or("");
  }

  void read_content(const field& content, openai_prompt::said& into) {
    if (in_.failed()) return;
    if (content.at.is(json::kind::string)) {
      into.content = content.at;
    } else if (content.at.is(json::kind::array)) {
      read_parts(content, into.content.emplace<std::vector<openai_prompt::part>>());
    } else {
      fail(content, "neither a text nor a list of parts");
    }
  }

  void read_parts(const field& content, std::vector<openai_prompt::part>& into) {
    const auto parts = json::elements(content.at, json::max_values);
    into.reserve(parts.size());
    for (std::size_t i = 0; i < parts.size() && !in_.failed(); ++i)
      into.push_back(read_part(field_reader::element(content, parts[i], i)));
  }

  openai_prompt::part read_part(const field& part) {
    using enum openai_prompt::part_kind;
    if (in_.required_object(part); in_.failed()) return {};
    std::string scratch;
    const auto type = in_.require(part, {"type"});
    const auto name = in_.failed() ? std::string_view() : in_.required_text(type, scratch);
    if (in_.failed()) return {};
    if (name == "refusal") return a_string(text, in_.require(part, {"refusal"}));
    if (name == "text") return a_string(text, in_.require(part, {"text"}));
    if (name == "image_url") return read_picture(part);
    if (name == "input_audio") return read_sound(part);
    fail(type, "none of text, image_url, input_audio");
    return {};
  }

  openai_prompt::part read_picture(const field& part) {
    const auto picture = in_.required_object(in_.require(part, {"image_url"}));
    const auto url = in_.require(picture, {"url"});
    if (in_.failed()) return {};
    std::string scratch;
    if (!in_.required_text(url, scratch).starts_with("data:"))
      fail(url, "only data URLs are supported: this server fetches nothing");
    std::string detail;
    ++pictures_;
    if (in_.text(field_reader::find(picture, {"detail"}), detail) == "low") ++small_pictures_;
    return a_string(openai_prompt::part_kind::image, url);
  }

  openai_prompt::part read_sound(const field& part) {
    const auto sound = in_.required_object(in_.require(part, {"input_audio"}));
    const auto format = field_reader::find(sound, {"format"});
    std::string scratch;
    constexpr std::array<std::string_view, 8> known{"wav", "mp3", "flac", "ogg", "opus", "aiff", "w64", "rf64"};
    if (const auto name = in_.text(format, scratch);
        name && std::find(known.begin(), known.end(), *name) == known.end())
      fail(format, "none of wav, mp3, flac, ogg, opus, aiff, w64, rf64");
    prompt_->holds_sound = true;
    return a_string(openai_prompt::part_kind::audio, in_.require(sound, {"data"}));
  }

  openai_prompt::part a_string(openai_prompt::part_kind kind, const field& content) {
    if (!in_.failed() && !content.at.is(json::kind::string)) fail(content, "not a string");
    return {kind, content.at};
  }

  std::shared_ptr<openai_prompt> prompt_;
  chat_append_event& terms_;
  const field top_;
  field_reader in_;
  openai_request out_;
  int pictures_ = 0;
  int small_pictures_ = 0;
};

} // namespace

result<openai_request> read_openai_request(std::string body) {
  if (!base::utf8::valid(body)) return tl::unexpected(error{error_code::invalid_payload, "the body is not UTF-8"});
  auto prompt = std::make_shared<openai_prompt>(std::move(body));
  if (prompt->found.outcome != json::verdict::good || !json::root(prompt->found).is(json::kind::object))
    return tl::unexpected(error{error_code::invalid_payload, "the body is not a JSON object that this server reads"});
  return reader(std::move(prompt)).run();
}

} // namespace parley::protocol
