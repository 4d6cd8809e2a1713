#include "protocol/media/base64.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <span>

namespace base64 = parley::protocol::base64;

void parley::test::fuzz(std::string_view bytes) {
  const auto decoded = base64::decode(bytes);
  expect(decoded.has_value() == base64::fault(bytes).empty(), "a fault is told exactly when there is one");
  if (decoded) {
    std::string again;
    base64::append(std::as_bytes(std::span(*decoded)), again);
    expect(again.size() == bytes.size() && base64::decode(again) == decoded, "what was read is written alike");
  }
  std::string text;
  base64::append(std::as_bytes(std::span(bytes)), text);
  expect(text.size() == base64::encoded_size(bytes.size()) && base64::decode(text) == bytes, "to and fro");
}
