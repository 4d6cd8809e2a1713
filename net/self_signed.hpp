#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace parley::net {

/// Creates a self-signed certificate for `hosts` (names and addresses), localhost and the loopback addresses, valid for a year, with its
/// folders; only the owner can read the key. \throws config::settings_error if a file cannot be written,
/// std::runtime_error if OpenSSL fails
void make_self_signed(const std::filesystem::path& cert, const std::filesystem::path& key,
                      const std::vector<std::string>& hosts);

/// Whether the file holds a certificate that is valid for at least another week.
bool holds_for_a_while(const std::filesystem::path& cert);

/// Whether the file holds a certificate of `make_self_signed` that is not for all of `hosts`.
bool lacks_a_name(const std::filesystem::path& cert, const std::vector<std::string>& hosts);

} // namespace parley::net
