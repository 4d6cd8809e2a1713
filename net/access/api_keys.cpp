#include "net/access/api_keys.hpp"

#include "config/load.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace parley::net {
namespace {

constexpr std::size_t hash_bytes = 32;

std::array<std::uint8_t, hash_bytes> sha256(std::string_view text) {
  std::array<std::uint8_t, hash_bytes> hash{};
  if (EVP_Digest(text.data(), text.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256 is not available");
  return hash;
}

std::string limit_names() {
  std::string names;
  for (const auto& each : quota_table) names.append(each.name).append("=N, ");
  return names + "sessions=N, starts_per_minute=N";
}

/// What `NAME=` sets of a key's limits; null if there is no such limit.
std::int64_t* limit_named(key_limits& of, std::string_view name) {
  if (name == "sessions") return &of.sessions;
  if (name == "starts_per_minute") return &of.starts_per_minute;
  for (std::size_t i = 0; i < quota_table.size(); ++i)
    if (quota_table[i].name == name) return &of.quotas[i];
  return nullptr;
}

/// What is wrong with a limit, `NAME=NUMBER`; empty = it was set.
std::string set_limit(key_limits& of, std::string_view word) {
  constexpr std::int64_t most = 1'000'000'000'000;
  const auto name = word.substr(0, word.find('='));
  auto* const limit = word.size() > name.size() ? limit_named(of, name) : nullptr;
  if (!limit) return "only \"admin\" may follow the hash, and limits: " + limit_names();
  const auto digits = word.substr(name.size() + 1);
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || value < 1 || value > most)
    return std::string(name) + " is a number from 1 on";
  if (*limit != 0) return std::string(name) + " is set twice";
  *limit = value;
  return {};
}

std::optional<std::array<std::uint8_t, hash_bytes>> from_hex(std::string_view text) {
  std::array<std::uint8_t, hash_bytes> bytes{};
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* at = text.data() + 2 * i;
    if (std::from_chars(at, at + 2, bytes[i], 16).ptr != at + 2) return std::nullopt;
  }
  return bytes;
}

} // namespace

api_keys api_keys::load(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw config::settings_error("auth.keys_file: " + file.string() + " cannot be read");
  api_keys keys;
  keys.asked_ = true;
  std::set<std::string> names;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    std::string hash;
    if (!(words >> name)) continue;
    words >> hash;
    const auto problem = [&](const std::string& why) {
      return config::settings_error(file.string() + ":" + std::to_string(number) + ": " + why);
    };
    const auto bytes = from_hex(hash);
    if (!bytes) throw problem("a key is NAME HASH [admin] [LIMIT=NUMBER]..., HASH being 64 hexadecimal digits");
    owner whose{name};
    for (std::string word; words >> word;) {
      if (word == "admin" && !whose.admin)
        whose.admin = true;
      else if (const auto wrong = set_limit(whose.limits, word); !wrong.empty())
        throw problem(wrong);
    }
    if (!names.insert(name).second) throw problem("the name " + name + " occurs twice");
    keys.entries_.push_back({*bytes, std::move(whose)});
  }
  if (in.bad()) throw config::settings_error("auth.keys_file: " + file.string() + " cannot be read");
  return keys;
}

std::optional<api_keys::owner> api_keys::find(std::string_view key) const {
  const digest hash = sha256(key);
  const entry* found = nullptr;
  for (const entry& each : entries_)
    if (CRYPTO_memcmp(each.hash.data(), hash.data(), hash.size()) == 0) found = &each;
  if (!found) return std::nullopt;
  return found->whose;
}

bool api_keys::has_owner(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const entry& each) { return each.whose.name == name; });
}

std::map<std::string, key_limits, std::less<>> api_keys::limits() const {
  std::map<std::string, key_limits, std::less<>> all;
  for (const entry& each : entries_) all.emplace(each.whose.name, each.whose.limits);
  return all;
}

std::vector<std::string> api_keys::missing_in(const api_keys& others) const {
  std::vector<std::string> names;
  for (const entry& each : entries_)
    if (std::none_of(others.entries_.begin(), others.entries_.end(), [&](const entry& o) { return o.is_key_of(each); }))
      names.push_back(each.whose.name);
  return names;
}

} // namespace parley::net
