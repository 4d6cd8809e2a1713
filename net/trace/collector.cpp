#include "net/trace/collector.hpp"

#include "config/load.hpp"
#include "net/host_name.hpp"
#include "net/text.hpp"

#include <algorithm>
#include <fstream>

namespace parley::net {
namespace {

constexpr std::size_t most_headers = 16;
constexpr std::size_t most_header_bytes = 8192;

bool is_token(std::string_view text) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           marks.find(c) != std::string_view::npos;
  });
}

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

} // namespace

collector read_collector(std::string_view url) {
  const auto bad = [] {
    return config::settings_error("tracing.endpoint must be http://HOST[:PORT]/PATH, or https://");
  };
  collector out;
  out.tls = url.starts_with("https://");
  if (!out.tls && !url.starts_with("http://")) throw bad();
  const auto rest = url.substr(out.tls ? 8 : 7);
  const auto slash = std::min(rest.find('/'), rest.size());
  const auto where = read_authority(rest.substr(0, slash));
  out.target = slash < rest.size() ? rest.substr(slash) : "/v1/traces";
  if (!where || !is_visible(out.target) || out.target.find('#') != std::string::npos) throw bad();
  out.host = where->host.address ? where->host.address->to_string() : where->host.name;
  out.port = std::to_string(where->port.value_or(out.tls ? 443 : 80));
  out.authority = rest.substr(0, slash);
  return out;
}

header_list read_headers(const std::filesystem::path& file) {
  if (file.empty()) return {};
  const auto bad = [&](int line, const std::string& why) {
    return config::settings_error("tracing.headers_file: " + file.string() + ":" + std::to_string(line) + ": " + why);
  };
  std::ifstream in(file);
  if (!in) throw config::settings_error("tracing.headers_file: " + file.string() + " cannot be read");
  header_list out;
  std::string line;
  std::size_t bytes = 0;
  for (int number = 1; std::getline(in, line); ++number) {
    const auto text = without_blanks(line);
    if (text.empty() || text.starts_with('#')) continue;
    const auto colon = std::min(text.find(':'), text.size());
    const auto name = text.substr(0, colon);
    const auto value = without_blanks(text.substr(std::min(colon + 1, text.size())));
    const bool printable =
        std::all_of(value.begin(), value.end(), [](char c) { return c == '\t' || (c >= ' ' && c <= '~'); });
    if (colon == text.size() || !is_token(name) || !printable) throw bad(number, "a header is NAME: VALUE");
    for (const auto* ours : {"host", "content-length", "content-type", "transfer-encoding", "connection"})
      if (lower(name) == ours) throw bad(number, "this header is not to be set");
    bytes += text.size();
    out.emplace_back(name, value);
    if (out.size() > most_headers || bytes > most_header_bytes) throw bad(number, "there are too many headers");
  }
  if (in.bad()) throw config::settings_error("tracing.headers_file: " + file.string() + " cannot be read");
  return out;
}

} // namespace parley::net
