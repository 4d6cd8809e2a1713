#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace parley::inference::check {

/// The revision of openbmb/MiniCPM-o-4_5 that most people use. The sizes and hashes here belong to it; they were
/// gathered from public manifests and tests of others.
inline constexpr std::string_view pinned_revision = "503e754207c94da6bb26850b4469f367c9ea3582";

/// One of its files. Unknown values are 0 or empty.
struct known_file {
  std::string_view name;
  std::uint64_t bytes;
  std::string_view sha256;
};

inline constexpr known_file known_files[] = {
    {"model-00004-of-00004.safetensors", 0, "f61addf4747c94fedcaee059e5d9918ed15543beec494404139a99f2f86c9b31"},
    {"assets/token2wav/campplus.onnx", 28'303'423, "a6ac6a63997761ae2997373e2ee1c47040854b4b759ea41ec48e4e42df0f4d73"},
    {"assets/token2wav/flow.pt", 623'466'603, "15ccff24256ff61537c7f8b51e025116b83405f3fb017b54b008fc97da115446"},
    {"assets/token2wav/flow.yaml", 1'099, "723295d37bf11f5f1b896ca4f2f4c81ebc2fbb3e51b753c2507ef8461c751486"},
    {"assets/token2wav/hift.pt", 83'390'254, "3386cc880324d4e98e05987b99107f49e40ed925b8ecc87c1f4939432d429879"},
    {"assets/token2wav/speech_tokenizer_v2_25hz.onnx", 496'082'973,
     "d43342aa12163a80bf07bffb94c9de2e120a8df2f9917cd2f642e7f4219c6f71"},
    {"assets/system_ref_audio.wav", 539'032, "2c4109b2d685e1923ed66433eb08c92047a1f67510629a27edf49af4e5c606dd"}};

} // namespace parley::inference::check
