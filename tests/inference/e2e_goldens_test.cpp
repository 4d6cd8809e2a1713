#include "inference/verify/verify.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

using parley::inference::verify::run_verify;

namespace {

struct outcome {
  int status;
  std::string lines;
};

outcome verify(const std::filesystem::path& goldens) {
  std::ostringstream out;
  const int status = run_verify("models/tiny-omni", goldens, out);
  return {status, out.str()};
}

void replace(const std::filesystem::path& file, const std::string& from, const std::string& to) {
  std::string text;
  {
    std::ifstream in(file);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  std::ofstream(file) << text;
}

} // namespace

TEST_CASE("the public end-to-end goldens are reproduced") {
  const auto [status, lines] = verify("tests/data/goldens/e2e");
  INFO(lines);
  CHECK(status == 0);
  CHECK_THAT(lines, Catch::Contains("ok E1/unit.15.sound") && Catch::Contains("ok E2/full_audio"));
  CHECK_THAT(lines, Catch::Contains("ok E5b_no_tts_eos/sound") && Catch::Contains("ok E5c_window_defect/sound"));
}

TEST_CASE("another word, sound or file in an end-to-end recording is noticed") {
  parley::tests::temporary_folder folder;
  const auto from = std::filesystem::path("tests/data/goldens/e2e");
  for (const auto* file : {"E1.json", "E1.safetensors", "manifest.json", "noise.safetensors", "inputs.safetensors"})
    std::filesystem::copy_file(from / file, folder.path() / file);
  replace(folder.path() / "E1.json", "\"end_of_turn\":true", "\"end_of_turn\":false");
  replace(folder.path() / "E1.json", "\"samples\":3840", "\"samples\":3841");
  const auto [status, lines] = verify(folder.path());
  CHECK(status == 1);
  CHECK_THAT(lines, Catch::Contains("FAIL E1/unit.3 ") && Catch::Contains("(end_of_turn)"));
  CHECK_THAT(lines, Catch::Contains("FAIL E1/unit.3.sound") && Catch::Contains("(samples of a call)"));
  CHECK_THAT(lines, Catch::Contains("FAIL E2/*") && Catch::Contains("no replay for this case"));
}
