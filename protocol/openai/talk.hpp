#pragma once

#include "conversation/tools.hpp"
#include "protocol/openai/request.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

/// What to do next.
struct openai_step {
  std::string to_session; ///< a client frame; empty = none
  std::string to_client;  ///< server-sent events, or the whole body at once; empty = nothing yet
  bool over = false;      ///< the answer is complete
  std::optional<openai_fault> fault{};
};

/// One completion, played as a client's conversation with a chat session, in which each choice is a turn: call `begin`,
/// then `on_frame` for every frame of the server, until `over` or a fault. Pure.
class openai_talk {
public:
  /// `created_s`: Unix time.
  openai_talk(openai_request request, std::int64_t created_s);

  /// Returns the session's init.
  openai_step begin();

  /// Takes a text frame of the server.
  openai_step on_frame(std::string_view frame);

  bool streaming() const { return request_.streaming; }

private:
  openai_step on_call(conversation::tool_call call);
  openai_step on_call_part(conversation::tool_call part);
  openai_step on_delta(const std::string& text, std::string_view audio, std::string_view scores);
  std::string chunk(std::string_view delta, std::string_view finish_reason, std::string_view scores = {});
  std::string encode_logprobs(std::string_view scores) const;
  std::string head(std::string_view object) const;
  const std::string& chunk_head();
  std::string last_of_sound();
  std::string name() const;

  /// What all choices together took; they have their prompt in common.
  struct token_counts {
    std::int64_t prompt = 0, prompt_audio = 0, completion = 0, completion_audio = 0;
  };

  /// The end of a turn.
  struct answer {
    std::string text;
    std::string reason;
    std::optional<std::string_view> audio; ///< float32 samples, base64
    std::string_view scores;               ///< JSON; empty = none
    token_counts used;
  };

  std::string next_turn();
  openai_step on_answer(const answer& done);
  void append_message(const answer& done);
  std::string encode_usage() const;

  openai_request request_;
  std::string id_;         ///< derived from the session's id
  std::string chunk_head_; ///< what all chunks begin with; empty = not written yet
  const std::int64_t created_s_;
  bool over_ = false;
  token_counts used_;
  std::string choices_; ///< those that are complete, unless they are streamed

  // the choice that is being made
  int choice_ = 0;
  bool began_ = false; ///< the first chunk, which names the role, has been sent
  std::string spoken_; ///< words of an answer with sound that is streamed
  std::vector<conversation::tool_call> calls_;
};

} // namespace parley::protocol
