#include "protocol/openai/request.hpp"

#include "base/utf8.hpp"
#include "protocol/json/document.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/openai/spoken_id.hpp"

#include <algorithm>
#include <array>
#include <optional>
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
  explicit reader(const json::document& body) : top_{json::root(body), {}} {}

  result<openai_request> run() {
    refuse_what_is_not_there();
    read_plain_fields();
    std::string append = R"({"type":"input.append","input":{"messages":[)";
    write_messages(append);
    append += R"(],"streaming":)";
    append += out_.streaming ? "true" : "false";
    write_generation(append);
    for (const char* name : {"tools", "tool_choice", "response_format"}) pass_on(name, append);
    if (out_.streaming && at("tools").at.given()) append += R"(,"tool_call_deltas":true)";
    write_logprobs(append);
    if (out_.sound != sound_format::none) append += R"(,"tts":{"enabled":true})";
    if (pictures_ > 0 && small_pictures_ == pictures_) append += R"(,"image":{"max_slice_nums":1})";
    append += "}}";
    if (in_.failed()) return in_.failure();
    out_.append = std::move(append);
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

  /// What the session's append has in the same words: the session checks it.
  void pass_on(const char* name, std::string& to) const {
    const auto given = at(name);
    if (!given.at.given() || is_empty(given)) return;
    to.append(",\"").append(name).append("\":");
    append_value(given.at, to);
  }

  static void append_value(json::value of, std::string& to) {
    of.is(json::kind::string) ? write_raw(of, to) : static_cast<void>(to += of.raw());
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

  void write_generation(std::string& to) {
    int most = default_answer_tokens;
    // The last one is how OpenAI's other APIs spell it.
    for (const auto* name : {"max_tokens", "max_completion_tokens", "max_output_tokens"})
      in_.integer(at(name), 1, field_reader::any, most);
    std::optional<double> temperature;
    std::optional<double> top_p;
    std::optional<int> top_k;
    std::optional<std::uint64_t> seed;
    in_.number(at("temperature"), 0, 2, temperature);
    in_.number(at("top_p"), 0, 1, top_p);
    in_.integer(at("top_k"), 0, field_reader::any, top_k);
    in_.seed(at("seed"), seed);
    to += R"(,"generation":)";
    json::object_writer write(to);
    write.integer("max_new_tokens", std::min(most, most_answer_tokens));
    if (temperature) write.number("temperature", *temperature, 6);
    if (top_p) write.number("top_p", *top_p, 6);
    if (top_k) write.integer("top_k", *top_k);
    if (seed) {
      const auto digits = std::to_string(static_cast<std::int64_t>(*seed));
      write.json("seed", digits);
      out_.seed = {*seed, to.size() - digits.size(), digits.size()};
    }
    pass_on("stop", to);
    write.close();
  }

  void write_logprobs(std::string& to) {
    std::optional<int> most;
    in_.boolean(at("logprobs"), out_.scored);
    in_.integer(at("top_logprobs"), 0, most_logprobs, most);
    if (most && !out_.scored) fail(at("top_logprobs"), "only together with logprobs");
    if (out_.scored) to += R"(,"logprobs":)" + std::to_string(most.value_or(0));
  }

  void write_messages(std::string& to) {
    const auto messages = in_.require(top_, {"messages"});
    if (in_.failed()) return;
    if (!messages.at.is(json::kind::array)) return fail(messages, "not an array");
    const auto all = json::elements(messages.at, json::max_values);
    for (std::size_t i = 0; i < all.size() && !in_.failed(); ++i) {
      if (i > 0) to += ',';
      write_message({all[i], messages.path + "[" + std::to_string(i) + "]"}, to);
    }
  }

  void write_message(const field& message, std::string& to) {
    if (in_.required_object(message); in_.failed()) return;
    std::string scratch;
    const auto from = in_.require(message, {"role"});
    auto role = in_.failed() ? std::string_view() : in_.required_text(from, scratch);
    if (role == "developer") role = "system";
    if (in_.failed()) return;
    if (role != "system" && role != "user" && role != "assistant" && role != "tool")
      return fail(from, "none of system, user, assistant, tool");
    to += R"({"role":")";
    to.append(role) += '"';
    if (role == "assistant") return write_answer(message, to);
    if (const auto call = field_reader::find(message, {"tool_call_id"}); role == "tool" && call.at.given()) {
      to += R"(,"tool_call_id":)";
      append_value(call.at, to);
    }
    write_content(in_.require(message, {"content"}), to);
    to += '}';
  }

  /// What an assistant said, as this API's answers have it: its words may stand in another member than `content`.
  void write_answer(const field& message, std::string& to) {
    const auto calls = field_reader::find(message, {"tool_calls"});
    const bool has_calls = calls.at.given() && !json::elements(calls.at, 1).empty();
    if (has_calls) to.append(R"(,"tool_calls":)").append(calls.at.raw());
    if (const auto old = field_reader::find(message, {"function_call"}); old.at.given())
      return fail(old, "not supported by this server: use tool_calls");
    const auto content = field_reader::find(message, {"content"});
    if (says_something(content)) {
      write_content(content, to);
    } else if (const auto audio = field_reader::find(message, {"audio"}); audio.at.given()) {
      write_words(spoken_words(in_.required_object(audio)), to);
    } else if (const auto refusal = field_reader::find(message, {"refusal"}); refusal.at.given()) {
      std::string scratch;
      write_words(in_.required_text(refusal, scratch), to);
    } else if (content.at.present() && !has_calls) {
      write_words("", to);
    } else if (!has_calls) {
      in_.require(message, {"content"}); // says what is wrong
    }
    to += '}';
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

  static void write_words(std::string_view words, std::string& to) {
    to += R"(,"content":)";
    json::append_string(words, to);
  }

  void write_content(const field& content, std::string& to) {
    if (in_.failed()) return;
    to += R"(,"content":)";
    if (content.at.is(json::kind::string)) {
      write_raw(content.at, to);
    } else if (content.at.is(json::kind::array)) {
      write_parts(content, to);
    } else {
      fail(content, "neither a text nor a list of parts");
    }
  }

  void write_parts(const field& content, std::string& to) {
    to += '[';
    const auto parts = json::elements(content.at, json::max_values);
    for (std::size_t i = 0; i < parts.size() && !in_.failed(); ++i) {
      if (i > 0) to += ',';
      write_part({parts[i], content.path + "[" + std::to_string(i) + "]"}, to);
    }
    to += ']';
  }

  void write_part(const field& part, std::string& to) {
    if (in_.required_object(part); in_.failed()) return;
    std::string scratch;
    const auto type = in_.require(part, {"type"});
    const auto name = in_.failed() ? std::string_view() : in_.required_text(type, scratch);
    if (in_.failed()) return;
    if (name == "refusal") return write_item("text", "text", in_.require(part, {"refusal"}), to);
    if (name == "text") return write_item("text", "text", in_.require(part, {"text"}), to);
    if (name == "image_url") return write_picture(part, to);
    if (name == "input_audio") return write_sound(part, to);
    fail(type, "none of text, image_url, input_audio");
  }

  void write_picture(const field& part, std::string& to) {
    const auto picture = in_.required_object(in_.require(part, {"image_url"}));
    const auto url = in_.require(picture, {"url"});
    if (in_.failed()) return;
    std::string scratch;
    if (!in_.required_text(url, scratch).starts_with("data:"))
      return fail(url, "only data URLs are supported: this server fetches nothing");
    std::string detail;
    ++pictures_;
    if (in_.text(field_reader::find(picture, {"detail"}), detail) == "low") ++small_pictures_;
    write_item("image", "data", url, to);
  }

  void write_sound(const field& part, std::string& to) {
    const auto sound = in_.required_object(in_.require(part, {"input_audio"}));
    const auto format = field_reader::find(sound, {"format"});
    std::string scratch;
    constexpr std::array<std::string_view, 8> known{"wav", "mp3", "flac", "ogg", "opus", "aiff", "w64", "rf64"};
    if (const auto name = in_.text(format, scratch);
        name && std::find(known.begin(), known.end(), *name) == known.end())
      return fail(format, "none of wav, mp3, flac, ogg, opus, aiff, w64, rf64");
    write_item("audio", "data", in_.require(sound, {"data"}), to);
  }

  void write_item(std::string_view type, std::string_view member, const field& content, std::string& to) {
    if (in_.failed()) return;
    if (!content.at.is(json::kind::string)) return fail(content, "not a string");
    to.append(R"({"type":")").append(type).append(R"(",")").append(member).append("\":");
    write_raw(content.at, to);
    to += '}';
  }

  /// What is valid between the quotes of one JSON text is valid in any other.
  static void write_raw(json::value string, std::string& to) {
    to += '"';
    to += string.raw();
    to += '"';
  }

  const field top_;
  field_reader in_;
  openai_request out_;
  int pictures_ = 0;
  int small_pictures_ = 0;
};

} // namespace

result<openai_request> read_openai_request(std::string_view body) {
  if (!base::utf8::valid(body)) return tl::unexpected(error{error_code::invalid_payload, "the body is not UTF-8"});
  const auto whole = json::scan(body);
  if (whole.outcome != json::verdict::good || !json::root(whole).is(json::kind::object))
    return tl::unexpected(error{error_code::invalid_payload, "the body is not a JSON object that this server reads"});
  return reader(whole).run();
}

} // namespace parley::protocol
