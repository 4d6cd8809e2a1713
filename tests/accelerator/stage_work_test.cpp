#include "tests/accelerator/stage_work.hpp"

#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

#include <cstdio>
#include <map>
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
    {"LLM step, own prompts", 1, 67, 1, 1},
    {"LLM step, own prompts", 8, 67, 1, 1},
    {"LLM step, own prompts", 64, 67, 1, 1},
    {"LLM step, shared prompt", 1, 67, 1, 1},
    {"LLM step, shared prompt", 8, 112, 1, 1},
    {"LLM step, shared prompt", 64, 112, 1, 1},
    {"LLM step in bfloat16, own prompts", 1, 62, 1, 1},
    {"LLM step in bfloat16, own prompts", 64, 62, 1, 1},
    {"LLM step in bfloat16, shared prompt", 64, 89, 1, 1},
    {"LLM, 13 rows in bfloat16, shared prompt", 64, 89, 1, 1},
    {"TTS step", 1, 37, 1, 1},
    {"TTS step", 8, 37, 1, 1},
    {"TTS step", 64, 37, 1, 1},
    {"TTS pass", 1, 254, 5, 1},
    {"TTS pass", 8, 254, 5, 1},
    {"TTS pass", 64, 254, 5, 1},
    {"hear", 1, 39, 1, 0},
    {"hear", 8, 39, 1, 0},
    {"hear", 64, 39, 1, 0},
    {"window", 1, 1218, 3, 1},
    {"window", 8, 1218, 3, 1},
    {"window", 64, 1212, 2, 1},
    {"uneven windows", 8, 1226, 3, 1},
    {"uneven windows", 64, 1220, 2, 1},
    {"window, original vocoder", 1, 1036, 3, 1},
    {"window, original vocoder", 8, 1046, 3, 1},
};

device_work work_of(const staged_model& model, const std::string& stage, int sessions) {
  const std::map<std::string, staged_model::llm_call> llm_calls{
      {"LLM step, own prompts", {}},
      {"LLM step, shared prompt", {prompt::shared}},
      {"LLM step in bfloat16, own prompts", {prompt::own, 1, true}},
      {"LLM step in bfloat16, shared prompt", {prompt::shared, 1, true}},
      {"LLM, 13 rows in bfloat16, shared prompt", {prompt::shared, 13, true}}};
  if (const auto found = llm_calls.find(stage); found != llm_calls.end())
    return model.llm_step(sessions, found->second);
  if (stage == "TTS step") return model.tts_step(sessions);
  if (stage == "TTS pass") return model.tts_pass(sessions);
  if (stage == "hear") return model.hear(sessions);
  if (stage == "window") return model.window(sessions, windows::equal);
  if (stage == "uneven windows") return model.window(sessions, windows::uneven);
  REQUIRE(stage == "window, original vocoder");
  return model.original_window(sessions, windows::equal);
}

} // namespace

/// What a GPU is asked to do for one call of a stage of the embedded model: the counts of today, which may fall and not
/// grow. bench/README.md has them as a table.
TEST_CASE("no stage asks more of a device than its budget") {
  const c10::InferenceMode guard;
  const staged_model model;
  for (const auto& limit : budgets) {
    const auto work = work_of(model, limit.stage, limit.sessions);
    std::printf("| %s | %d | %ld | %ld | %ld | %ld |\n", limit.stage, limit.sessions, work.kernels, work.uploads,
                work.downloads, work.calls);
    INFO(limit.stage << " of " << limit.sessions);
    CHECK(work.kernels <= limit.kernels);
    CHECK(work.uploads <= limit.uploads);
    CHECK(work.downloads <= limit.downloads);
  }
}
