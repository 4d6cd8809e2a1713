#pragma once

#include "conversation/tools.hpp"
#include "protocol/events.hpp"
#include "protocol/guest/session.hpp"
#include "protocol/openai/completions/request.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace parley::protocol {

/// Why a completion failed, in HTTP terms.
struct openai_fault {
  unsigned status = 500;
  std::string code; ///< an error code of the wire, or `invalid_api_key` and similar
  std::string message;
  std::string param{}; ///< the field that is wrong; empty = null
};

/// `{"error":{"message","type","param","code"}}`.
std::string encode_openai_error(const openai_fault& fault);

/// The fault that corresponds to an error on the wire.
openai_fault openai_fault_of(std::string_view wire_code, std::string message);

/// What to tell the client.
struct openai_reply {
  std::string text;  ///< server-sent events, or the whole body at once; empty = nothing yet
  bool over = false; ///< nothing follows
  std::optional<openai_fault> fault{};
};

/// One completion, played as a guest's conversation with a chat session, in which each choice is a turn. Call `begin`, then
/// `on_event` for every event of the session, until a reply is the last. Pure.
class openai_talk {
public:
  using effect =
      std::variant<guest::open_session, guest::to_session, guest::turn_to_session, guest::drop_session, openai_reply>;
  using effects = std::vector<effect>;

  /// `created_s`: Unix time.
  openai_talk(openai_request request, std::int64_t created_s);

  /// Opens the session.
  effects begin();

  effects on_event(const server_event& event);

  /// The session is gone, for a reason in plain words.
  effects on_closed(const std::string& why);

  bool streaming() const { return request_.streaming; }

private:
  void heed(const session_created& event);
  void heed(const output_delta& event);
  void heed(const response_tool_call& event);
  void heed(const response_tool_call_delta& event);
  void heed(const response_done& event);
  void heed(const error_event& event);
  void heed(const session_closed& event);
  void heed(const auto&) {}

  void ask_next();
  void tell_call_part(const conversation::tool_call& part);
  void append_message(const response_done& done);
  void reply(std::string text, bool over = false);
  void fail(openai_fault why);
  std::string chunk(std::string_view delta, std::string_view finish_reason, std::string_view scores = {});
  std::string head(std::string_view object) const;
  const std::string& chunk_head();
  std::string last_of_sound();
  std::string name() const;
  std::string encode_usage() const;
  effects take() { return std::exchange(out_, {}); }

  openai_request request_;
  effects out_;
  guest::session<effects> session_{out_};
  std::shared_ptr<const guest::deferred_turn> asked_; ///< until the session answers: dropped, nobody wants it
  std::string id_;                                    ///< derived from the session's id
  std::string chunk_head_;                            ///< what all chunks begin with; empty = not written yet
  const std::int64_t created_s_;
  usage used_;          ///< by all choices together; they have their prompt in common
  std::string choices_; ///< those that are complete, unless they are streamed

  // the choice that is being made
  int choice_ = 0;
  bool began_ = false; ///< the first chunk, which names the role, has been sent
  std::string spoken_; ///< words of an answer with sound that is streamed
  std::vector<conversation::tool_call> calls_;
};

} // namespace parley::protocol
