#pragma once

#include <string>
#include <utility>
#include <vector>

namespace parley::client::test {

/// What a simulated person did, in words.
struct noted_steps {
  std::vector<std::string> done;

  /// All since the last call, with spaces between.
  std::string take() {
    std::string all;
    for (const auto& what : std::exchange(done, {})) all += (all.empty() ? "" : " ") + what;
    return all;
  }
};

} // namespace parley::client::test
