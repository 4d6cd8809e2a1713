#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace parley::net {

/// Keys that a server makes for the owners of API keys, to hand on to browsers: `ek_` and what they allow, authenticated
/// (HMAC-SHA256). The server remembers none of them, so nothing revokes one before it expires, except the end of its
/// owner's API key or another secret. Whoever has one can read what is in it. Thread-safe.
class ephemeral_keys {
public:
  using unix_clock = std::function<std::int64_t()>;

  /// What a key allows, and until when.
  struct grant {
    std::int64_t expires_at = 0; ///< Unix time
    std::string owner;           ///< name of the API key; empty without keys
    std::string session;         ///< JSON: what sessions begin with; at most `most_session_bytes`
  };

  /// Requests carry keys in a header or the URL.
  static constexpr std::size_t most_session_bytes = 6u << 10;

  /// With a secret of this process alone. `clock`: seconds of Unix time.
  explicit ephemeral_keys(unix_clock clock = system_clock());

  /// With the secret in a file, which several gateways may share: at least 32 bytes. \throws config::settings_error
  static ephemeral_keys load(const std::filesystem::path& file, unix_clock clock = system_clock());

  std::int64_t now() const { return clock_(); }

  /// Whether a client that offers this means one of these keys.
  static bool is_one(std::string_view key) { return key.starts_with("ek_"); }

  std::string make(const grant& what) const;

  /// What the key allows; nothing if it is not one of ours or has expired. Takes the same time however much of a wrong
  /// one is right.
  std::optional<grant> read(std::string_view key) const;

private:
  static unix_clock system_clock();
  std::string signature(std::string_view payload) const;

  std::string secret_;
  unix_clock clock_;
};

} // namespace parley::net
