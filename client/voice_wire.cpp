#include "client/voice_wire.hpp"

#include "protocol/json/document.hpp"
#include "protocol/media/base64.hpp"

#include <array>
#include <span>
#include <utility>

namespace parley::client {
namespace {

namespace json = protocol::json;
using kind = voice_event::kind;

constexpr std::int64_t late_frames_ms = 400; ///< how much a busy network may bunch up the frames of the Live API

std::string text_of(json::value string) {
  return string.is(json::kind::string) ? json::unescape(string) : std::string();
}

using names = std::span<const std::pair<std::string_view, kind>>;

/// What both dialects have in common.
voice_event read_event(const json::document& document, names known) {
  voice_event out;
  const auto event = json::root(document);
  const auto type = json::member(event, "type");
  if (!type.is(json::kind::string)) return out;
  for (const auto& [name, what] : known)
    if (name == type.raw()) out.what = what;
  if (out.what == kind::error) out.code = text_of(json::member(json::member(event, "error"), "code"));
  if (out.what == kind::closed) out.code = text_of(json::member(event, "reason"));
  if (out.what == kind::sound) {
    const auto delta = json::member(event, "delta");
    if (delta.is(json::kind::string))
      out.samples = protocol::base64::decoded_size(delta.raw()).value_or(0) / sizeof(std::int16_t);
  }
  return out;
}

/// `path` with another last part in place of `/v1/realtime`.
std::string beside(const std::string& path, std::string_view last) {
  constexpr std::string_view own = "/v1/realtime";
  return path.substr(0, path.size() - (path.ends_with(own) ? own.size() : 0)) + std::string(last);
}

class realtime final : public voice_wire {
public:
  voice_traits traits() const override { return {.server_begins = true}; }
  std::string path(const std::string& realtime_path) const override { return realtime_path; }
  std::string query() const override { return "model=parley"; }
  std::string begin() const override {
    return R"({"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":)"
           R"({"type":"semantic_vad","eagerness":"high"}}}}})";
  }
  std::string append(std::string_view base64) const override {
    return R"({"type":"input_audio_buffer.append","audio":")" + std::string(base64) + R"("})";
  }
  std::string probe() const override { return R"({"type":"session.update","session":{"type":"realtime"}})"; }
  std::string close() const override { return {}; }

  voice_event read(std::string_view frame) const override {
    static constexpr std::array<std::pair<std::string_view, kind>, 8> known{{
        {"session.created", kind::greeted},
        {"session.updated", kind::ready},
        {"response.created", kind::answer_begins},
        {"response.output_audio_transcript.delta", kind::words},
        {"response.output_text.delta", kind::words},
        {"response.output_audio.delta", kind::sound},
        {"response.done", kind::answer_ends},
        {"error", kind::error},
    }};
    const auto document = json::scan(frame);
    auto out = read_event(document, known);
    if (out.what == kind::answer_ends) {
      const auto status = text_of(json::member(json::member(json::root(document), "response"), "status"));
      out.cancelled = status == "cancelled";
      if (status == "failed") out.code = "response_failed";
    }
    return out;
  }

  std::unique_ptr<protocol::conformance::event_validator> validator() const override {
    return protocol::conformance::make_realtime_validator();
  }
};

class live final : public voice_wire {
public:
  voice_traits traits() const override { return {.says_goodbye = true, .paced = true, .pause = 0.8}; }
  std::string path(const std::string& realtime_path) const override {
    return beside(realtime_path, "/v1/live/sessions");
  }
  std::string query() const override { return {}; }
  std::string begin() const override {
    return R"({"type":"session.start","session":{"model":"parley","audio":{"format":{"type":"audio/pcm","rate":24000}},)"
           R"("delegation":{"type":"client"}}})";
  }
  std::string append(std::string_view base64) const override {
    return R"({"type":"session.input_audio.append","audio":")" + std::string(base64) + R"("})";
  }
  std::string probe() const override { return R"({"type":"session.input_audio.unmute"})"; }
  std::string close() const override { return R"({"type":"session.close"})"; }

  voice_event read(std::string_view frame) const override {
    static constexpr std::array<std::pair<std::string_view, kind>, 6> known{{
        {"session.started", kind::ready},
        {"session.input_audio.unmuted", kind::ready},
        {"session.output_transcript.delta", kind::words},
        {"session.output_audio.delta", kind::sound},
        {"session.closed", kind::closed},
        {"error", kind::error},
    }};
    return read_event(json::scan(frame), known);
  }

  std::unique_ptr<protocol::conformance::event_validator> validator() const override {
    return protocol::conformance::make_live_validator(late_frames_ms);
  }
};

} // namespace

const voice_wire& realtime_wire() {
  static const realtime only;
  return only;
}

const voice_wire& live_wire() {
  static const live only;
  return only;
}

} // namespace parley::client
