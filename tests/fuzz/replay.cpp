#include "tests/fuzz/fuzz.hpp"
#include "tests/support/mutated.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

// Usage: replay CORPUS RUNS [SEED]. Runs every file of the corpus, then RUNS mutations. Names the failing input.
namespace {

std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " CORPUS RUNS [SEED]\n";
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::cerr << "no corpus in " << argv[1] << '\n';
    return 1;
  }
  std::vector<std::string> inputs;
  for (const auto& file : files) {
    inputs.push_back(content(file));
    parley::test::fuzz(inputs.back());
  }
  const auto runs = std::stoull(argv[2]);
  std::mt19937 random(argc > 3 ? static_cast<unsigned>(std::stoul(argv[3])) : 1U);
  auto last = inputs; // the newest mutation of each file; half of the runs mutate it further
  for (auto run = 0ULL; run < runs; ++run) {
    const auto which = random() % inputs.size();
    const auto further = random() % 2 == 0 && !last[which].empty() && last[which].size() < 4 * inputs[which].size();
    last[which] = parley::test::mutated(further ? std::move(last[which]) : inputs[which], random);
    parley::test::fuzz(last[which]);
  }
  std::cout << files.size() << " files and " << runs << " changed ones\n";
}
