#pragma once

#include <string>

namespace parley::actors {

/// Who asks for something over HTTP.
struct principal {
  std::string key;       ///< name of the API key, empty without keys
  bool sees_all = false; ///< an admin's key; without keys, the server's own machine
};

} // namespace parley::actors
