// How the engine's passes would follow one another on a GPU, for people who come at different moments: the real scheduler over the
// costs of stages that gpu_stages has measured. Prints the lag of units in milliseconds, for comparing limits before a GPU is at hand.
//   gpu_passes --sessions 16,32,64,96 --gather-sounds 30 --speech-steps 12      as bench/README.md measured

#include "inference/engine/scheduler.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <vector>

using namespace parley::inference;
using clock_type = std::chrono::steady_clock;
using milliseconds = std::chrono::duration<double, std::milli>;

namespace {

/// Milliseconds of a call for `n` sessions: `base + each * n`. The defaults are those of an H100 with mixed precision (bench/README.md).
struct cost {
  double base, each;
  double of(std::size_t n) const { return n == 0 ? 0 : base + each * static_cast<double>(n); }
};

struct wish {
  std::vector<int> sessions{1, 16, 20, 32, 64, 96};
  double seconds = 60, spoken = 0.4, pass_ms = 6;
  int words = 6, speech_tokens = 26;
  pass_limits limits = accelerator_limits();
  int gather_sounds = static_cast<int>(limits.gather_sounds.count());
  int gather_windows = static_cast<int>(limits.gather_windows.count());
  std::uint64_t seed = 1;
  cost hear{1.8, 0.15}, decode{7.7, 0.06}, unit{11.3, 0.5}, speech_step{1.28, 0.012}, window{16.3, 1.5};
};

/// One second of one session, on its way through the stages.
struct unit {
  clock_type::time_point arrived;
  stage at = stage::idle;
  int words_left = 0, speech_left = 0;
};

clock_type::duration ms(double value) {
  return std::chrono::duration_cast<clock_type::duration>(milliseconds(value));
}

double share_of(std::vector<double>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

/// Simulates so many sessions, and prints a row.
void simulate(const wish& how, int count) {
  auto limits = how.limits;
  limits.gather_sounds = std::chrono::milliseconds(how.gather_sounds);
  limits.gather_windows = std::chrono::milliseconds(how.gather_windows);
  std::mt19937_64 chance(how.seed);
  std::uniform_real_distribution<double> uniform;
  const clock_type::time_point start{std::chrono::hours(1)}, end = start + ms(how.seconds * 1e3);
  std::vector<unit> units(static_cast<std::size_t>(count));
  std::vector<clock_type::time_point> next;
  for (auto i = 0; i < count; ++i) next.push_back(start + ms(1e3 * uniform(chance)));
  auto now = start, windows_from = start;
  std::vector<double> listening, speaking;
  double busy = 0;
  std::size_t passes = 0, windows = 0, window_calls = 0;
  while (now < end) {
    for (std::size_t i = 0; i < units.size(); ++i)
      if (units[i].at == stage::idle && next[i] <= now) {
        const auto speaks = uniform(chance) < how.spoken;
        units[i] = {next[i], stage::hear, speaks ? how.words : 0, speaks ? how.speech_tokens : 0};
        next[i] += std::chrono::seconds(1);
      }
    std::vector<ready_session> ready;
    for (std::size_t i = 0; i < units.size(); ++i)
      if (const auto& u = units[i]; u.at != stage::idle)
        ready.push_back(
            {i, u.at, u.arrived + std::chrono::seconds(1), u.at == stage::prefill ? 13 : 0, false, false, 1});
    const auto plan = schedule_pass(ready, limits, now, nullptr, windows_from);
    if (plan.empty()) {
      now = std::max(now, *std::ranges::min_element(next));
      continue;
    }
    const auto begin = now;
    now += ms(how.pass_ms + how.hear.of(plan.hear.size()) +
              (plan.prefill.empty()
                   ? how.decode.of(plan.decode.size())
                   : how.unit.of(plan.prefill.size()) + how.decode.each * static_cast<double>(plan.decode.size())) +
              limits.speech_steps * how.speech_step.of(plan.speak.size()));
    const auto windows_begin = now;
    now += ms(how.window.of(plan.sound.size()));
    if (!plan.sound.empty()) {
      windows_from = now + limits.window_rest * (now - windows_begin);
      windows += plan.sound.size();
      ++window_calls;
    }
    busy += milliseconds(now - begin).count();
    ++passes;
    auto done = [&](unit& u, std::vector<double>& lags) {
      lags.push_back(milliseconds(now - u.arrived).count());
      u.at = stage::idle;
    };
    for (const auto id : plan.hear) units[id].at = stage::prefill;
    for (const auto& piece : plan.prefill) {
      auto& u = units[piece.session];
      if (u.words_left > 0)
        u.at = stage::decode;
      else
        done(u, listening);
    }
    for (const auto id : plan.decode)
      if (--units[id].words_left == 0) units[id].at = stage::speak;
    for (const auto id : plan.speak)
      if ((units[id].speech_left -= limits.speech_steps) <= 0) units[id].at = stage::sound;
    for (const auto id : plan.sound) done(units[id], speaking);
  }
  auto all = listening;
  all.insert(all.end(), speaking.begin(), speaking.end());
  for (auto* lags : {&all, &listening, &speaking}) std::ranges::sort(*lags);
  const auto late = std::ranges::count_if(all, [](double lag) { return lag > 1000; });
  std::printf("| %d | %.0f / %.0f / %.0f | %.0f / %.0f | %.0f / %.0f | %td | %.1f | %.1f | %.0f |\n", count,
              share_of(all, 0.5), share_of(all, 0.95), share_of(all, 0.99), share_of(listening, 0.5),
              share_of(listening, 0.99), share_of(speaking, 0.5), share_of(speaking, 0.95), late,
              busy / static_cast<double>(passes),
              window_calls == 0 ? 0.0 : static_cast<double>(windows) / static_cast<double>(window_calls),
              100 * busy / milliseconds(end - start).count());
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Simulates the engine's passes on a GPU", "gpu_passes"};
  wish how;
  app.add_option("--sessions", how.sessions, "Numbers of sessions")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--seconds", how.seconds, "Simulated");
  app.add_option("--spoken", how.spoken, "Share of the seconds that are answered in speech");
  app.add_option("--words", how.words, "Tokens of text in them");
  app.add_option("--gather-sounds", how.gather_sounds, "Milliseconds");
  app.add_option("--gather-windows", how.gather_windows, "Milliseconds");
  app.add_option("--speech-steps", how.limits.speech_steps, "Speech tokens of a pass");
  app.add_option("--window-rest", how.limits.window_rest, "Times what windows took");
  app.add_option("--pass", how.pass_ms, "Milliseconds of a pass outside its stages");
  app.add_option("--seed", how.seed);
  CLI11_PARSE(app, argc, argv);
  std::printf("| sessions | lag, ms p50 / p95 / p99 | of listening seconds, p50 / p99 | of spoken ones, p50 / p95 | "
              "late | ms of a pass | windows of a call | busy, %% |\n"
              "|---|---|---|---|---|---|---|---|\n");
  for (const auto count : how.sessions) simulate(how, count);
  return 0;
}
