#include "protocol/speech/voice_activity.hpp"

#include "base/read_file.hpp"
#include "protocol/speech/silero_detector.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

// What a detector of speech says of files of samples (float32, 16 kHz): a line for each, the CPU time of a second of sound
// in µs and a digit for each 20 ms. bench/voice_activity.py makes the files and judges the answers.
//   voice_activity loudness|silero THRESHOLD FILE…
int main(int argc, char** argv) {
  using namespace parley::protocol::speech;
  if (argc < 4) return 2;
  const auto how = std::string(argv[1]) == "silero" ? voice_detection::silero : voice_detection::loudness;
  const double threshold = std::stod(argv[2]);
  for (int i = 3; i < argc; ++i) {
    const auto bytes = parley::base::read_file(argv[i]).value();
    std::vector<float> samples(bytes.size() / sizeof(float));
    bytes.copy(reinterpret_cast<char*>(samples.data()), samples.size() * sizeof(float));
    const auto detector = make_detector(how);
    std::string said;
    const auto began = std::clock();
    for (auto rest = std::span(samples); rest.size() >= frame_samples; rest = rest.subspan(frame_samples))
      said += detector->is_speech(rest.first(frame_samples), threshold) ? '1' : '0';
    const auto us = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC * 1e6;
    std::cout << us / (static_cast<double>(samples.size()) / 16'000) << ' ' << said << '\n';
  }
}
