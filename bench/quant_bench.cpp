// What fewer bits cost and save: how closely the quantized language model agrees on recorded prompts, how much
// memory it takes, and how fast it runs. A table on standard output.
//   quant_bench MODEL [PROMPTS]
//   quant_bench MODEL FORMAT -
// PROMPTS is a folder of goldens or a file with lists of token ids; without it, the first form measures only memory and
// speed. The second form, for bench/llama_cpp.py, measures FORMAT (float32, bfloat16, int8 or int4) on demand. It answers
// each line "THREADS RUNS WHAT N" of standard input with a line of JSON: the least time of RUNS runs. WHAT is "decode" (one
// token for each of N sessions), "prefill" (a prompt of N rows), or "read" (a plain read of as many bytes as "decode" reads;
// with N = 0, of the weights alone).

#include "inference/engine/default_model.hpp"
#include "inference/kernels/huge_pages.hpp"
#include "inference/kernels/simd.hpp"
#include "inference/verify/agreement.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <iostream>
#include <iterator>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace parley::inference;

namespace {

/// Milliseconds.
struct cost {
  double wall = 1e9, processor = 1e9;
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The least of several runs.
template<class Work>
cost least(int runs, Work&& work) {
  cost best;
  for (auto i = 0; i < runs; ++i) {
    const auto processor = processor_seconds();
    const auto wall = std::chrono::steady_clock::now();
    work();
    best.wall =
        std::min(best.wall, std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count() * 1e3);
    best.processor = std::min(best.processor, (processor_seconds() - processor) * 1e3);
  }
  return best;
}

constexpr std::int64_t past_rows = 128;

/// Sessions with 128 rows each.
class sessions {
public:
  sessions(const llm::qwen3& model, int count)
      : model_(model), pool_(model.config(), count, 256, model.dtype(), model.device()),
        next_(static_cast<std::size_t>(count), 7) {
    const std::vector<token_id> prompt(past_rows, 5);
    for (auto i = 0; i < count; ++i) {
      caches_.push_back(pool_.open());
      const llm::sequence_rows whole{&caches_.back(), past_rows};
      model.forward(model.embed(prompt), {&whole, 1}, {});
      wanted_.push_back(i);
    }
    for (auto& c : caches_) rows_.push_back({&c, 1});
  }

  /// A token of each.
  cost decode(int runs) {
    return least(runs, [&] {
      model_.logits(model_.forward(model_.embed(next_), rows_, wanted_));
      for (auto& c : caches_) c.truncate(past_rows);
    });
  }

private:
  const llm::qwen3& model_;
  llm::kv_pool pool_;
  std::vector<llm::kv_cache> caches_;
  std::vector<llm::sequence_rows> rows_;
  std::vector<std::int64_t> wanted_;
  std::vector<token_id> next_;
};

/// A prompt of `count` rows, and the logits of its last.
cost prefill(const llm::qwen3& model, std::int64_t count, int runs) {
  llm::kv_pool pool(model.config(), 1, static_cast<int>(count), model.dtype(), model.device());
  const std::vector<token_id> prompt(static_cast<std::size_t>(count), 5);
  const auto last = count - 1;
  return least(runs, [&] {
    auto cache = pool.open();
    const llm::sequence_rows whole{&cache, count};
    model.logits(model.forward(model.embed(prompt), {&whole, 1}, {&last, 1}));
  });
}

/// The sum of `count` numbers, in four streams, as the products read (kernels/product.cpp).
PARLEY_FOR_EACH_CPU std::uint64_t sum_of(const std::uint64_t* from, std::size_t count) {
  const auto length = count / 32 * 8;
  const auto *a = from, *b = a + length, *c = b + length, *d = c + length;
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < length; i += 8)
    for (std::size_t j = 0; j < 8; ++j) sums[j] += (a[i + j] + b[i + j]) + (c[i + j] + d[i + j]);
  return std::accumulate(std::begin(sums), std::end(sums), std::uint64_t{});
}

/// `bytes` bytes in huge pages, as the weights.
at::Tensor memory_of(std::size_t bytes) {
  return cpu::in_huge_pages(at::ones({static_cast<std::int64_t>(bytes / sizeof(std::uint64_t))}, at::kLong));
}

/// Reads this memory on `threads` threads and hardly computes anything.
cost plain_read(const at::Tensor& memory, int threads, int runs) {
  const auto* from = static_cast<const std::uint64_t*>(memory.const_data_ptr());
  const auto share = static_cast<std::size_t>(memory.numel() / threads);
  std::atomic<std::uint64_t> sum = 0;
  return least(runs, [&] {
    std::vector<std::jthread> others;
    for (auto i = 1; i < threads; ++i)
      others.emplace_back([&, at = from + share * static_cast<std::size_t>(i)] { sum += sum_of(at, share); });
    sum += sum_of(from, share);
  });
}

/// How many bytes are read to decode one token for each of `count` sessions: the whole model except the embedding, and for
/// each session the keys and values of 128 rows.
std::size_t bytes_read(const llm::qwen3& model, std::int64_t count) {
  const auto& config = model.config();
  const auto element = static_cast<std::int64_t>(c10::elementSize(model.dtype()));
  const auto row = std::int64_t{config.layers} * config.kv_heads * config.head_dim * 2;
  return model.weight_bytes() +
         static_cast<std::size_t>(element * (count * past_rows * row - model.vocabulary() * config.hidden_size));
}

struct format {
  std::string_view name;
  at::ScalarType dtype;
  llm::quantization quantized;
};

constexpr std::array formats{
    format{"float32", at::kFloat, llm::quantization::none}, format{"bfloat16", at::kBFloat16, llm::quantization::none},
    format{"int8", at::kFloat, llm::quantization::int8}, format{"int4", at::kFloat, llm::quantization::int4}};

/// Answers the lines of standard input. What a case needs stays for its next turn.
void measure_on_demand(const std::filesystem::path& directory, std::string_view name) {
  const auto chosen = std::ranges::find(formats, name, &format::name);
  if (chosen == formats.end()) throw std::runtime_error("no format " + std::string(name));
  c10::InferenceMode guard;
  const llm::qwen3 model(model_config::open(directory).llm, checkpoint::open(directory).view("llm.", chosen->dtype),
                         chosen->quantized);
  std::map<int, sessions> decoding;
  std::map<int, at::Tensor> memory;
  const auto spent = [&](const std::string& what, int n, int threads, int runs) {
    if (what == "decode") return decoding.try_emplace(n, model, n).first->second.decode(runs);
    if (what == "prefill") return prefill(model, n, runs);
    if (what != "read") throw std::runtime_error("no case " + what);
    if (!memory.contains(n)) memory[n] = memory_of(bytes_read(model, n));
    return plain_read(memory[n], threads, runs);
  };
  std::string what;
  for (auto threads = 0, runs = 0, n = 0; std::cin >> threads >> runs >> what >> n;) {
    at::set_num_threads(threads);
    const auto [wall, processor] = spent(what, n, threads, runs);
    std::printf("{\"wall_ms\": %.3f, \"cpu_ms\": %.3f}\n", wall, processor);
    std::fflush(stdout);
  }
}

void run(const std::filesystem::path& directory, const char* recorded) {
  c10::InferenceMode guard;
  const auto weights = checkpoint::open(directory);
  const auto config = model_config::open(directory).llm;
  const auto model = [&](at::ScalarType dtype, llm::quantization format) {
    return llm::qwen3(config, weights.view("llm.", dtype), format);
  };
  std::vector<std::vector<token_id>> prompts;
  if (recorded) prompts = verify::recorded_prompts(directory, recorded);
  const auto exact = model(at::kFloat, llm::quantization::none);
  std::printf("| weights | dtype | MiB | ms of CPU a token, 1 session | 8 | same top-1 | of clear ones | KL, nats "
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
                  static_cast<double>(other.weight_bytes()) / (1 << 20), sessions(other, 1).decode(8).processor,
                  sessions(other, 8).decode(8).processor);
      if (recorded)
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
    const std::span<char*> arguments(argv + 1, static_cast<std::size_t>(argc - 1));
    if (arguments.size() > 2)
      measure_on_demand(arguments[0], arguments[1]);
    else
      run(arguments.empty() ? embedded_model("tiny-omni") : std::filesystem::path(arguments[0]),
          arguments.size() > 1 ? arguments[1] : nullptr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quant_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
