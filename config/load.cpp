#include "config/load.hpp"

#include "base/read_file.hpp"
#include "config/keys.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace parley::config {

namespace {

std::string at_line(std::string_view name, const toml::source_region& where) {
  return std::string(name) + ":" + std::to_string(where.begin.line) + ": ";
}

std::optional<value> value_of(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* real = node.as_floating_point()) return real->get();
  if (const auto* text = node.as_string()) return text->get();
  return {};
}

bool is_section(std::string_view name) {
  for (const auto& k : keys())
    if (k.name.starts_with(name) && k.name.substr(name.size()).starts_with('.')) return true;
  return false;
}

void take_section(settings& target, std::string_view section, const toml::table& content, std::string_view file) {
  for (const auto& [name, node] : content) {
    const std::string full = std::string(section) + "." + std::string(name.str());
    const auto* which = find_key(full);
    if (!which) throw settings_error(at_line(file, name.source()) + "unknown key " + full);
    const auto given = value_of(node);
    const auto complaint =
        given ? assign(target, *which, *given) : std::optional<std::string>("must be a single value");
    if (complaint) throw settings_error(at_line(file, node.source()) + full + " " + *complaint);
  }
}

template<class Number>
std::optional<value> parse(std::string_view text) {
  Number number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

/// Converts command-line text to the key's type as far as possible; `assign` refuses the rest.
value read_as(const field& member, std::string_view text) {
  if (!std::holds_alternative<std::string*>(member)) {
    if (text == "true" || text == "false") return text == "true";
    if (auto whole = parse<std::int64_t>(text)) return *whole;
    if (auto real = parse<double>(text)) return *real;
  }
  return std::string(text);
}

void set_from_text(settings& target, const key& which, std::string_view text, std::string_view label) {
  if (const auto complaint = assign(target, which, read_as(which.member(target), text)))
    throw settings_error(std::string(label) + " " + *complaint + ", not \"" + std::string(text) + "\"");
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_transport(std::string_view name) {
  return name == "TCP" || name == "UDP" || name == "SCTP";
}

/// Whether Kubernetes, or Docker for a link, put the variable there for a service whose name begins like one of our
/// sections, as that of a Service parley-server does: SERVER_SERVICE_HOST, SERVER_SERVICE_PORT, and with the name of a
/// port; SERVER_PORT=tcp://HOST:PORT; SERVER_PORT_8006_TCP, and with _PROTO, _PORT, _ADDR. `name` is without prefix.
bool tells_of_a_service(std::string_view name, std::string_view text) {
  if (name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT") ||
      name.find("_SERVICE_PORT_") != std::string_view::npos)
    return true;
  if (name.ends_with("_PORT") &&
      (text.starts_with("tcp://") || text.starts_with("udp://") || text.starts_with("sctp://")))
    return true;
  for (const std::string_view end : {"_PROTO", "_PORT", "_ADDR"})
    if (name.ends_with(end)) {
      name.remove_suffix(end.size());
      break;
    }
  const auto transport = name.rfind('_');
  if (transport == std::string_view::npos || !is_transport(name.substr(transport + 1))) return false;
  name = name.substr(0, transport);
  const auto port = name.rfind('_');
  return port != std::string_view::npos && is_number(name.substr(port + 1)) && name.substr(0, port).ends_with("_PORT");
}

} // namespace

void load_text(settings& target, std::string_view toml, std::string_view name) {
  toml::table root;
  try {
    root = toml::parse(toml);
  } catch (const toml::parse_error& e) {
    throw settings_error(at_line(name, e.source()) + std::string(e.description()));
  }
  for (const auto& [section, node] : root) {
    const auto* content = node.as_table();
    if (!is_section(section.str()))
      throw settings_error(at_line(name, section.source()) + "unknown " + (content ? "section " : "key ") +
                           std::string(section.str()));
    if (!content)
      throw settings_error(at_line(name, section.source()) + std::string(section.str()) + " must be a section");
    take_section(target, section.str(), *content, name);
  }
}

void load_file(settings& target, const std::filesystem::path& file) {
  const auto text = base::read_file(file);
  if (!text) throw settings_error(file.string() + ": cannot be read");
  load_text(target, *text, file.string());
}

void apply_override(settings& target, std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos)
    throw settings_error("--set takes section.key=value, not \"" + std::string(assignment) + "\"");
  const auto name = assignment.substr(0, equals);
  const auto* which = find_key(name);
  if (!which) throw settings_error("--set: unknown key " + std::string(name));
  set_from_text(target, *which, assignment.substr(equals + 1), "--set: " + std::string(name));
}

void apply_environment(settings& target, const char* const* environment) {
  constexpr std::string_view prefix = "PARLEY_";
  for (; *environment; ++environment) {
    const std::string_view variable = *environment;
    const auto equals = variable.find('=');
    if (!variable.starts_with(prefix) || equals == std::string_view::npos) continue;
    const auto label = variable.substr(0, equals);
    std::string name(label.substr(prefix.size()));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto split = name.find('_');
    if (split == std::string::npos || !is_section(std::string_view(name).substr(0, split))) continue;
    if (tells_of_a_service(label.substr(prefix.size()), variable.substr(equals + 1))) continue;
    name[split] = '.';
    const auto* which = find_key(name);
    if (!which) throw settings_error(std::string(label) + ": unknown key " + name);
    set_from_text(target, *which, variable.substr(equals + 1), std::string(label) + ": " + name);
  }
}

void check_whole(const settings& settings) {
  const auto& nodes = settings.nodes;
  const int given = !nodes.cert.empty() + !nodes.key.empty() + !nodes.ca.empty();
  if (given != 0 && given != 3) throw settings_error("nodes.cert, nodes.key and nodes.ca belong together");
  if (settings.tls.mode == tls_mode::file && (settings.tls.cert.empty() || settings.tls.key.empty()))
    throw settings_error("tls.mode = \"file\" needs tls.cert and tls.key");
}

void apply_flag(settings& target, std::string_view flag, std::string_view key, std::string_view value) {
  set_from_text(target, *find_key(key), value, flag);
}

} // namespace parley::config
