#pragma once

#include <filesystem>
#include <string>

namespace parley::net {

/// Creates a self-signed certificate for `host`, localhost and the loopback addresses, valid for a year, with its
/// folders; only the owner can read the key. \throws config::settings_error if a file cannot be written,
/// std::runtime_error if OpenSSL fails
void make_self_signed(const std::filesystem::path& cert, const std::filesystem::path& key, const std::string& host);

/// Whether the file holds a certificate that is valid for at least another week.
bool holds_for_a_while(const std::filesystem::path& cert);

} // namespace parley::net
