#include "protocol/codec/client_codec.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace parley::protocol;
using parley::test::expect;

// Client frames in both dialects, decoded as every event that they might be.
void parley::test::fuzz(std::string_view bytes) {
  const auto from = peek(bytes);
  if (!from) {
    expect(!from.error().reason.message.empty(), "a fault has a reason");
    return;
  }
  for (const auto url_mode : {std::optional(mode::chat), std::optional(mode::video), std::optional<mode>()}) {
    const auto init = decode_session_init(*from, url_mode);
    if (!init) expect(!init.error().message.empty(), "an error has words");
  }
  for (const auto kind : {mode::audio, mode::video}) {
    const auto update = decode_session_update(*from, kind);
    if (!update) expect(!update.error().message.empty(), "an error has words");
    const auto append = decode_append(*from, kind, 4000);
    if (!append) expect(!append.error().message.empty(), "an error has words");
  }
  const auto result = decode_tool_result(*from);
  if (!result) expect(!result.error().message.empty(), "an error has words");
  const auto chat = decode_chat_append(*from);
  if (!chat) expect(!chat.error().message.empty(), "an error has words");
  expect(!decode_close(*from).reason.empty(), "a close has a reason");
}
