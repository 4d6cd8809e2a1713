#pragma once

#include <string>

namespace parley::actors {

/// Who makes an HTTP request.
struct principal {
  std::string key;       ///< name of the API key; empty without keys
  bool sees_all = false; ///< an admin's key; without keys, a request from the server's own machine
};

} // namespace parley::actors
