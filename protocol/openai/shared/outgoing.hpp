#pragma once

#include "protocol/ids.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/openai/shared/fault.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::protocol::openai {

/// The server's events in the order in which they are sent, each with an `event_id`.
class outgoing {
public:
  explicit outgoing(random_source random) : random_(std::move(random)) {}

  /// A new id: the prefix and 20 characters.
  std::string make_id(std::string_view prefix) { return protocol::make_id(random_, prefix); }

  /// Adds an event; `write` adds its fields to the object_writer that it gets.
  template<class Write>
  void event(std::string_view type, Write write) {
    event_without_id(type, [&](json::object_writer& out) {
      out.text("event_id", make_id("event_"));
      write(out);
    });
  }
  template<class Write>
  void event_without_id(std::string_view type, Write write) {
    std::string& text = events_.emplace_back();
    json::object_writer out(text);
    out.text("type", type);
    write(out);
    out.close();
  }

  /// `client_event_id`: of the event that is at fault; empty = none.
  void error(const fault& why, std::string_view client_event_id) {
    codes_.push_back(why.code);
    event("error", [&](json::object_writer& out) {
      auto error = out.object("error");
      error.text("type", why.type);
      error.text("code", why.code);
      error.text("message", why.message);
      why.param.empty() ? error.json("param", "null") : error.text("param", why.param);
      client_event_id.empty() ? error.json("event_id", "null") : error.text("event_id", client_event_id);
      error.close();
    });
  }

  /// What was added since the last call.
  std::vector<std::string> take() { return std::exchange(events_, {}); }

  /// The codes of the errors among them.
  std::vector<std::string> take_codes() { return std::exchange(codes_, {}); }

private:
  random_source random_;
  std::vector<std::string> events_;
  std::vector<std::string> codes_;
};

/// Writes an id, or null if it is empty.
inline void write_id(json::object_writer& out, std::string_view key, std::string_view id) {
  id.empty() ? out.json(key, "null") : out.text(key, id);
}

} // namespace parley::protocol::openai
