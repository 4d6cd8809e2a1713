#include "tests/protocol/samples.hpp"

#include <iostream>

// Prints every sample as a line with tabs between: good or bad, the schema's entry, the text.
int main() {
  using namespace parley::protocol::test;
  auto print = [](const char* verdict, const std::vector<sample>& samples) {
    for (auto& one : samples) std::cout << verdict << '\t' << one.entry << '\t' << one.text << '\n';
  };
  print("good", server_samples());
  print("good", client_samples());
  print("bad", refused_client_samples());
  return std::cout.good() ? 0 : 1;
}
