#include "net/routes/secret_routes.hpp"

#include "net/routes/refusals.hpp"
#include "protocol/ids.hpp"
#include "protocol/openai/realtime/client_secret.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

namespace parley::net {
namespace {

using protocol::openai::realtime::secret_form;

struct secret_path {
  std::string_view path;
  secret_form form;
};
constexpr std::array<secret_path, 3> secret_paths{{
    {"/v1/realtime/client_secrets", secret_form::ga},
    {"/openai/v1/realtime/client_secrets", secret_form::ga},
    {"/v1/realtime/sessions", secret_form::beta},
}};

http_reply make_secret(const http_request& request, secret_form form, const ephemeral_keys& keys, bool transcribes) {
  auto asked = protocol::openai::realtime::read_secret_request(request.body, form, ephemeral_keys::most_session_bytes);
  if (!asked) {
    const auto& why = asked.error();
    return completion_error({400, why.code, why.message, why.param});
  }
  asked->config.can_transcribe = transcribes;
  const auto expires_at = keys.now() + asked->seconds;
  const auto owner = request.may.key_asked && request.may.who ? request.may.who->key : std::string();
  const auto key = keys.make({expires_at, owner, asked->session});
  std::random_device device;
  protocol::random_source random = [&] { return (std::uint64_t{device()} << 32) | device(); };
  const auto id = protocol::make_id(random, "sess_");
  return {200, protocol::openai::realtime::encode_secret(*asked, form, key, expires_at, id)};
}

} // namespace

bool asks_for_secret(std::string_view method, std::string_view path) {
  return method == "POST" &&
         std::any_of(secret_paths.begin(), secret_paths.end(), [&](const auto& each) { return each.path == path; });
}

void add_secret_routes(router& table, const ephemeral_keys& keys, bool transcribes) {
  for (const auto& [path, form] : secret_paths) {
    table.add("POST", path, [form = form, &keys, transcribes](const http_request& request, auto&, auto respond) {
      respond(make_secret(request, form, keys, transcribes));
    });
  }
}

} // namespace parley::net
