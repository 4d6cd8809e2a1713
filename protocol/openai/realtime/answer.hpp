#pragma once

#include "protocol/events.hpp"
#include "protocol/openai/realtime/client_event.hpp"
#include "protocol/openai/realtime/output_buffer.hpp"
#include "protocol/openai/shared/items.hpp"
#include "protocol/openai/shared/outgoing.hpp"
#include "protocol/speech/sound.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parley::protocol::openai::realtime {

/// How a response ended.
struct answer_end {
  enum class how : std::uint8_t { completed, cancelled, incomplete, failed };
  how status = how::completed;
  std::string reason{};                    ///< of cancelled and incomplete; the code of failed
  std::string error_type = "server_error"; ///< of failed
  std::string message{};                   ///< of failed: why; empty = what the code says
};

/// One response: says what it does to the client in the order that clients rely on (docs/openai.md), and keeps its
/// item. `created` is the first call, `finish` the last. Everything it refers to must outlive it.
class answer {
public:
  /// `items`: the conversation that its item becomes part of; null = out of band.
  answer(outgoing& out, item_list* items, std::string conversation_id, response_request request,
         output_buffer* media = nullptr);

  const std::string& id() const { return id_; }
  const response_request& request() const { return request_; }
  bool in_conversation() const { return items_ != nullptr; }

  /// Milliseconds of sound so far.
  double sound_ms() const { return item_.sound_ms; }

  void create();

  /// Whether it is in the middle of the message with this id.
  bool is_saying(std::string_view item_id) const { return began_ && item_id == item_.id; }

  /// The client has cut the kept item with this id: it stays as it is now, whatever else is said.
  void cut_short(std::string_view item_id) { cut_ = cut_ || item_id == item_.id; }
  void say(std::string_view words);

  /// A part of a function call: an item of its own, which begins with the part that has its name.
  void call_part(const conversation::tool_call& part);

  /// The whole call: says what no part has said. Its end is told with that of the response, or with what follows it:
  /// who has the call's result at once may ask for the next response with it.
  void call(const conversation::tool_call& what);

  /// So much sound at 24 kHz has been made of it, which `sound` may get later, or never: then the words that were not heard are
  /// not kept.
  void made(std::size_t samples);

  /// Samples at 24 kHz. In a call they go to `media`, and there are no events of them.
  void sound(const pcm& samples, time_point now);

  /// A response that ends well without having said anything has an item without words.
  void finish(const answer_end& how, const usage& used);

private:
  void begin();
  void begin_call(const std::string& id, const std::string& name);
  void end_call(item_status status);
  void end_message();
  void place_call(const item& called, json::object_writer& to) const;
  std::string add_item(const item& what);
  void close_item(const item& what);
  void end_item(item_status status);
  void send_sound(const std::string& base64);
  void place(json::object_writer& to) const;
  void write_response(json::object_writer& to, std::string_view status, const answer_end* how, const usage* used) const;
  std::string content_part(bool whole) const;
  template<class Change>
  void store(Change change);

  outgoing& out_;
  item_list* items_;
  const std::string conversation_id_;
  const response_request request_;
  const std::string id_;
  item item_;
  std::string before_;              ///< the item before it
  std::vector<std::string> output_; ///< items that have ended, JSON
  output_buffer* const media_;      ///< of a call
  speech::sound_encoder encoder_;
  bool began_ = false;       ///< its message has begun and not ended
  std::optional<item> call_; ///< a call that has begun, and whose end has not been told
  bool call_is_whole_ = false;
  std::vector<std::string> called_; ///< ids of the calls that have ended
  double made_ms_ = 0;
  bool cut_ = false; ///< the conversation has less of its message than was said
};

} // namespace parley::protocol::openai::realtime
