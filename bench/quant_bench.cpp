// What fewer bits cost and save: how closely the quantized language model agrees on the goldens' prompts, how much
// memory it takes, and how fast it decodes. A table on standard output.
//   quant_bench MODEL [GOLDENS]
// Without goldens it measures memory and speed only.

#include "inference/engine/default_model.hpp"
#include "inference/verify/agreement.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>

using namespace parley::inference;

namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Milliseconds of CPU per token and session, with `count` sessions after 128 rows each; the best of several runs.
double decode_ms(const llm::qwen3& model, int count) {
  llm::kv_pool pool(model.config(), count, 256, model.dtype(), model.device());
  std::vector<llm::kv_cache> caches;
  std::vector<llm::sequence_rows> rows;
  std::vector<std::int64_t> wanted;
  const std::vector<token_id> prompt(128, 5), next(static_cast<std::size_t>(count), 7);
  for (auto i = 0; i < count; ++i) {
    caches.push_back(pool.open());
    const llm::sequence_rows whole{&caches.back(), std::ssize(prompt)};
    model.forward(model.embed(prompt), {&whole, 1}, {});
    wanted.push_back(i);
  }
  for (auto& c : caches) rows.push_back({&c, 1});
  auto best = 1e9;
  for (auto i = 0; i < 8; ++i) {
    const auto begin = processor_seconds();
    model.logits(model.forward(model.embed(next), rows, wanted));
    best = std::min(best, processor_seconds() - begin);
  }
  return best * 1e3;
}

void run(const std::filesystem::path& directory, const char* goldens) {
  c10::InferenceMode guard;
  const auto weights = checkpoint::open(directory);
  const auto config = model_config::open(directory).llm;
  const auto model = [&](at::ScalarType dtype, llm::quantization format) {
    return llm::qwen3(config, weights.view("llm.", dtype), format);
  };
  std::vector<std::vector<token_id>> prompts;
  if (goldens) prompts = verify::golden_prompts(directory, goldens);
  const auto exact = model(at::kFloat, llm::quantization::none);
  std::printf("| weights | dtype | MiB | ms a token, 1 session | 8 | same top-1 | of clear ones | KL, nats "
              "|\n|---|---|---|---|---|---|---|---|\n");
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [format, name] :
         {std::pair{llm::quantization::none, "as they are"}, std::pair{llm::quantization::int8, "int8"},
          std::pair{llm::quantization::int4, "int4"}}) {
      const auto other = model(dtype, format);
      const auto alike = verify::compare(exact, other, prompts);
      const auto share = [](std::int64_t part, std::int64_t all) {
        return all > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(all) : 0;
      };
      std::printf("| %s | %s | %.1f | %.2f | %.2f |", name, dtype == at::kFloat ? "float32" : "bfloat16",
                  static_cast<double>(other.weight_bytes()) / (1 << 20), decode_ms(other, 1), decode_ms(other, 8));
      if (goldens)
        std::printf(" %.1f %% of %ld | %.1f %% of %ld | %.1e |\n", share(alike.same_top, alike.rows),
                    static_cast<long>(alike.rows), share(alike.same_clear, alike.clear_rows),
                    static_cast<long>(alike.clear_rows), alike.divergence);
      else
        std::printf(" | | |\n");
      std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  try {
    run(argc > 1 ? std::filesystem::path(argv[1]) : embedded_model("tiny-omni"), argc > 2 ? argv[2] : nullptr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quant_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
