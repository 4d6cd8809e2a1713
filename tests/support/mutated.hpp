#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>

namespace parley::test {

/// Changes, moves, doubles or drops a few bytes of a file, as an attacker might.
inline std::string mutated(std::string file, std::mt19937& random) {
  const auto any = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  for (auto changes = 1 + any(6); changes > 0 && file.size() > 8; --changes) {
    const auto at = any(file.size());
    switch (any(6)) {
    case 0: file[at] = static_cast<char>(random()); break;
    case 1: file[at] = static_cast<char>(file[at] ^ 1 << any(8)); break;
    case 2: file.erase(at, 1 + any(20)); break;
    case 3: file.insert(at, std::string(1 + any(20), static_cast<char>(random()))); break;
    case 4: file.insert(at, std::string(file, any(file.size()), 1 + any(60))); break;
    case 5: file.resize(at); break;
    }
  }
  // Damage to headers does most, so aim there often.
  if (!file.empty() && any(3) == 0) file[any(std::min<std::size_t>(file.size(), 40))] = static_cast<char>(random());
  return file;
}

} // namespace parley::test
