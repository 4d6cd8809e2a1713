#include "inference/verify/verify.hpp"

#include "inference/init/init_model.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>

using parley::inference::verify::run_verify;

namespace {

/// Prints the largest error of each golden file, and everything that failed.
void summarize(const std::string& lines) {
  std::map<std::string, double> worst;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    auto error = line.find("max_abs_err=");
    if (line.starts_with("ok ") && error != std::string::npos) {
      auto& known = worst[line.substr(3, line.find('/') - 3)];
      known = std::max(known, std::stod(line.substr(error + 12)));
    } else {
      std::cout << line << '\n';
    }
  }
  for (const auto& [file, error] : worst) std::cout << "verify " << file << ": largest error " << error << '\n';
}

} // namespace

TEST_CASE("the public thinker goldens are reproduced") {
  std::ostringstream out;
  int status = run_verify("tests/data/checkpoints/tiny", "tests/data/goldens/thinker", out);
  summarize(out.str());
  CHECK(status == 0);
}

TEST_CASE("other weights do not pass") {
  parley::tests::temporary_folder folder;
  parley::inference::init_model("tiny", 1, folder.path());
  std::ostringstream out;
  CHECK(run_verify(folder.path(), "tests/data/goldens/thinker", out) == 1);
  auto lines = out.str();
  CHECK_THAT(lines, Catch::Contains("FAIL audio_encoder/off.short") && Catch::Contains("FAIL tokenizer/tiny.cases."));
  CHECK_THAT(lines, Catch::Contains("ok mel/off.short")); // needs no weights
}

TEST_CASE("a folder without goldens is refused") {
  std::ostringstream out;
  CHECK_THROWS_AS(run_verify("tests/data/checkpoints/tiny", "tests/data/checkpoints/tiny", out), std::runtime_error);
}
