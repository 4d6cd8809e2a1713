#pragma once

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace parley::protocol::openai {

/// What a client got wrong, as the `error` of an error event of OpenAI's Realtime API.
struct fault {
  std::string code;
  std::string message;
  std::string param; ///< dotted path of the field; empty = null
  std::string type = "invalid_request_error";
};

template<class T>
using result = tl::expected<T, fault>;

inline tl::unexpected<fault> refuse(std::string code, std::string message, std::string param = {}) {
  return tl::unexpected(fault{std::move(code), std::move(message), std::move(param)});
}

inline tl::unexpected<fault> invalid_value(std::string_view path, std::string_view why) {
  return refuse("invalid_value", "Invalid value for '" + std::string(path) + "': " + std::string(why),
                std::string(path));
}

} // namespace parley::protocol::openai
