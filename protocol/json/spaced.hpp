#pragma once

#include "protocol/json/document.hpp"

#include <string>

namespace parley::protocol::json {

/// Appends a value on one line, with a space after each comma and colon, as Python's `json.dumps` writes it without
/// `ensure_ascii`. Numbers stay as they were written.
void append_spaced(value of, std::string& out);

} // namespace parley::protocol::json
