#include "tests/accelerator/stage_work.hpp"

#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

#include <cstdio>
#include <functional>
#include <string>

using namespace parley::inference::testing;

namespace {

using parley::inference::synthetic::prompt;
using windows = staged_model::windows;

struct budget {
  const char* stage;
  int sessions;
  long kernels, uploads, downloads;
};

constexpr budget budgets[] = {
    {"LLM step, own prompts", 1, 141, 5, 1},
    {"LLM step, own prompts", 8, 183, 5, 1},
    {"LLM step, own prompts", 64, 519, 5, 1},
    {"LLM step, shared prompt", 1, 141, 5, 1},
    {"LLM step, shared prompt", 8, 537, 5, 1},
    {"LLM step, shared prompt", 64, 3225, 5, 1},
    {"TTS step", 1, 37, 1, 1},
    {"TTS step", 8, 37, 1, 1},
    {"TTS step", 64, 37, 1, 1},
    {"hear", 1, 45, 1, 0},
    {"hear", 8, 122, 8, 0},
    {"hear", 64, 738, 64, 0},
    {"window", 1, 1284, 2, 1},
    {"window", 8, 1284, 2, 1},
    {"window", 64, 1284, 2, 1},
    {"uneven windows", 8, 1291, 2, 1},
    {"uneven windows", 64, 1291, 2, 1},
};

device_work work_of(const staged_model& model, const std::string& stage, int sessions) {
  if (stage == "LLM step, own prompts") return model.llm_step(sessions, prompt::own);
  if (stage == "LLM step, shared prompt") return model.llm_step(sessions, prompt::shared);
  if (stage == "TTS step") return model.tts_step(sessions);
  if (stage == "hear") return model.hear(sessions);
  if (stage == "window") return model.window(sessions, windows::equal);
  REQUIRE(stage == "uneven windows");
  return model.window(sessions, windows::uneven);
}

} // namespace

/// What a GPU is asked to do for one call of a stage of the embedded model: the counts of today, which may fall and not
/// grow. bench/README.md has them as a table.
TEST_CASE("no stage asks more of a device than its budget") {
  const c10::InferenceMode guard;
  const staged_model model;
  for (const auto& limit : budgets) {
    const auto work = work_of(model, limit.stage, limit.sessions);
    std::printf("| %s | %d | %ld | %ld | %ld |\n", limit.stage, limit.sessions, work.kernels, work.uploads,
                work.downloads);
    INFO(limit.stage << " of " << limit.sessions);
    CHECK(work.kernels <= limit.kernels);
    CHECK(work.uploads <= limit.uploads);
    CHECK(work.downloads <= limit.downloads);
  }
}
