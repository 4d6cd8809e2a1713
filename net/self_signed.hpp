#pragma once

#include <filesystem>
#include <string>

namespace parley::net {

/// A certificate for `host`, localhost and the loopback addresses, signed by itself, good for a year. Makes the
/// folders; the key can be read by its owner alone.
/// \throws config::settings_error when a file cannot be written, std::runtime_error when OpenSSL refuses
void make_self_signed(const std::filesystem::path& cert, const std::filesystem::path& key, const std::string& host);

/// Whether there is a certificate that is good for another week.
bool holds_for_a_while(const std::filesystem::path& cert);

} // namespace parley::net
