#include "protocol/openai/realtime/client_secret.hpp"

#include "base/utf8.hpp"
#include "protocol/json/document.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/openai/beta/beta_events.hpp"
#include "protocol/openai/shared/field_set.hpp"

#include <optional>
#include <utility>

namespace parley::protocol::openai::realtime {
namespace {

constexpr int least_seconds = 10;
constexpr int most_seconds = 7200;

void read_expiry(field_set from, secret_request& into) {
  auto expiry = from.object("expires_after");
  if (!expiry.given()) return;
  if (expiry.text("anchor").value_or("created_at") != "created_at")
    expiry.refuse_value("anchor", "it must be created_at.");
  if (const auto seconds = expiry.integer("seconds", least_seconds, most_seconds))
    into.seconds = static_cast<int>(*seconds);
}

/// The session of the body in the GA form; empty if it is nested too deeply.
std::string session_in(json::value body, std::string_view text, secret_form form) {
  if (form == secret_form::beta) {
    double unused = 0;
    const auto update = beta::from_beta(R"({"type":"session.update","session":)" + std::string(text) + "}", unused);
    const auto document = json::scan(update);
    return std::string(json::member(json::root(document), "session").raw());
  }
  const auto session = json::member(body, "session");
  return session.given() ? std::string(session.raw()) : "{}";
}

} // namespace

session_config with_defaults(const session_config& before, std::string_view session) {
  const auto document = json::scan(session);
  const auto root = json::root(document);
  if (document.outcome != json::verdict::good || !root.is(json::kind::object)) return before;
  return updated(before, root, nullptr).value_or(before); // checked when the key was made
}

result<secret_request> read_secret_request(std::string_view body, secret_form form, std::size_t most_session_bytes) {
  if (body.find_first_not_of(" \t\r\n") == body.npos) body = "{}";
  if (!base::utf8::valid(body)) return refuse("invalid_json", "The body is not UTF-8.");
  const auto document = json::scan(body);
  const auto root = json::root(document);
  if (document.outcome != json::verdict::good || !root.is(json::kind::object))
    return refuse("invalid_json", "The body is not a JSON object.");
  secret_request out;
  std::optional<fault> wrong;
  field_set from(root, "", wrong);
  read_expiry(form == secret_form::beta ? from.object("client_secret") : from, out);
  if (form == secret_form::ga && from.at("session").given()) from.object("session"); // says what is wrong
  if (wrong) return tl::unexpected(std::move(*wrong));
  out.session = session_in(root, body, form);
  if (out.session.empty()) return refuse("invalid_json", "The session is nested too deeply.", "session");
  if (out.session.size() > most_session_bytes)
    return refuse("invalid_value",
                  "The session is longer than " + std::to_string(most_session_bytes) +
                      " bytes: send the rest with session.update.",
                  "session");
  const auto session = json::scan(out.session);
  connection_budget budget(nullptr);
  event_sound event(budget, {});
  auto config = updated(out.config, json::root(session), &event);
  if (!config) return tl::unexpected(std::move(config.error()));
  out.config = std::move(*config);
  return out;
}

std::string encode_secret(const secret_request& asked, secret_form form, std::string_view key, std::int64_t expires_at,
                          std::string_view session_id) {
  auto session = encode_session(asked.config, session_id, expires_at);
  std::string out;
  if (form == secret_form::beta) {
    const auto event = beta::to_beta(R"({"type":"session.created","session":)" + session + "}", 0.8).value_or("{}");
    const auto document = json::scan(event);
    out = json::member(json::root(document), "session").raw();
    if (out.empty()) return session; // it has no form of the beta
    out.pop_back();
    out += R"(,"client_secret":)";
  }
  {
    json::object_writer write(out);
    write.text("value", key);
    write.integer("expires_at", expires_at);
    if (form == secret_form::ga) write.json("session", session);
    write.close();
  }
  if (form == secret_form::beta) out += '}';
  return out;
}

} // namespace parley::protocol::openai::realtime
