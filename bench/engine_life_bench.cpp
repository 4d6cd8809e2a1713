// What it costs an engine when sessions begin and end. PARLEY_BENCH_MODEL names a checkpoint folder; default:
// models/tiny-omni.
//   engine_life_bench prefix [sessions=50] [voice seconds=15]   time from open to opened, pages held
//   engine_life_bench share  [sessions=32] [voice seconds=15]   a unit of sessions that share a prompt, and of others that don't
//   engine_life_bench churn  [sessions=10000] [at a time=4]     memory and pages while sessions come and go
// CPU times are those of this process, so that other programs on the machine hardly matter.

#include "config/settings.hpp"
#include "inference/engine.hpp"
#include "inference/engine/default_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <numbers>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace parley::inference;

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

double wall_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double resident_mib() {
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024 * 1024);
}

/// A gliding chord, different for each `number`.
pcm some_sound(double seconds, int number) {
  std::vector<float> samples(static_cast<std::size_t>(seconds * 16000));
  for (auto i = std::size_t{0}; i < samples.size(); ++i) {
    const auto t = static_cast<double>(i) / 16000;
    const auto pitch = 110 + 7 * (number % 40) + 20 * std::sin(2 * t);
    samples[i] = static_cast<float>(0.2 * std::sin(2 * std::numbers::pi * pitch * t) * (1 + std::sin(11 * t)) / 2);
  }
  return std::make_shared<const std::vector<float>>(std::move(samples));
}

class stage_hand {
public:
  explicit stage_hand(int sessions) {
    parley::config::settings settings;
    const auto* named = std::getenv("PARLEY_BENCH_MODEL");
    settings.worker.model = named ? named : embedded_model("tiny-omni").string();
    settings.worker.max_sessions = sessions;
    settings.engine.seed = 1;
    engine_ = make_engine(settings, [this](event&& e) {
      if (std::holds_alternative<opened>(e)) ++opened_;
      if (const auto* f = std::get_if<failed>(&e)) throw std::runtime_error("a step failed: " + f->message);
      if (const auto* o = std::get_if<step_output>(&e); o && o->last) ++answered_;
    });
  }

  void open(session_id id, const std::string& prompt, const pcm& voice, const pcm& tts_voice, bool speaks) {
    duplex_options how;
    how.force_listen_count = 0;
    how.generate_audio = speaks;
    engine_->handle(open_duplex{id, prompt, how, voice, tts_voice, {}});
  }
  void unit(session_id id, const pcm& sound) { engine_->handle(submit_unit{{sound, {}, 1, false}, id, 1}); }
  void close(session_id id) { engine_->handle(close_session{id}); }
  void run() {
    while (engine_->advance()) {
    }
  }
  int held_pages() const { return engine_->capacity().kv_pages - engine_->capacity().kv_pages_free; }
  const engine_capacity capacity() const { return engine_->capacity(); }
  int opened_sessions() const { return opened_; }

private:
  std::unique_ptr<engine> engine_;
  int opened_ = 0, answered_ = 0;
};

const std::string persona =
    "You are a helpful assistant. You answer in the language of the question, in whole sentences, and stop "
    "as soon as you are interrupted. Names and numbers are spoken slowly.";

int prefix(int sessions, double voice_seconds) {
  std::cout << "start of a session, ms from open to opened (wall, CPU): the same prompt and a voice of "
            << voice_seconds << " s\n";
  for (const bool speaks : {false, true}) {
    stage_hand hand(sessions);
    // The client sends its voice again each time, as a new recording with the same samples.
    std::vector<double> wall, cpu;
    auto first_pages = 0;
    hand.open(1000, "warm up", some_sound(1, 1), speaks ? some_sound(1, 1) : nullptr, speaks);
    hand.run();
    hand.close(1000);
    const auto before = hand.held_pages();
    for (auto i = 0; i < sessions; ++i) {
      const auto voice = some_sound(voice_seconds, 7), tts_voice = speaks ? some_sound(voice_seconds, 7) : nullptr;
      const auto w = wall_ms(), c = cpu_ms();
      hand.open(static_cast<session_id>(i), persona, voice, tts_voice, speaks);
      hand.run();
      wall.push_back(wall_ms() - w);
      cpu.push_back(cpu_ms() - c);
      if (i == 0) first_pages = hand.held_pages() - before;
    }
    if (hand.opened_sessions() != sessions + 1) throw std::runtime_error("not all were opened");
    const auto all_pages = hand.held_pages() - before;
    for (auto i = 0; i < sessions; ++i) hand.unit(static_cast<session_id>(i), some_sound(1, i));
    hand.run();
    auto later = [](std::vector<double> times) {
      std::sort(times.begin() + 1, times.end());
      return std::pair{times[1 + (times.size() - 1) / 2], times.back()};
    };
    const auto [wall_median, wall_most] = later(wall);
    const auto [cpu_median, cpu_most] = later(cpu);
    std::cout << std::fixed << std::setprecision(3) << (speaks ? "with speech" : "text alone ") << "  first " << wall[0]
              << ", " << cpu[0] << "; median of the others " << wall_median << ", " << cpu_median << "; slowest "
              << wall_most << ", " << cpu_most << "; median/first " << std::setprecision(1)
              << 100 * wall_median / wall[0] << " %, slowest/first " << 100 * wall_most / wall[0] << " %\n"
              << "             pages held: " << first_pages << " by one session, " << all_pages << " by " << sessions
              << ", " << hand.held_pages() - before << " after a unit of each; prompts made "
              << hand.capacity().prompt_misses << ", shared " << hand.capacity().prompt_hits << '\n';
  }
  return 0;
}

int share(int sessions, double voice_seconds) {
  std::cout << "CPU ms of a unit, " << sessions << " sessions, text alone, a voice of " << voice_seconds << " s\n";
  constexpr auto units = 20, rounds = 3;
  stage_hand alike(sessions), apart(sessions);
  std::vector<pcm> sounds;
  for (auto i = 0; i < 40; ++i) sounds.push_back(some_sound(1, i));
  for (auto i = 0; i < sessions; ++i) {
    const auto id = static_cast<session_id>(i);
    alike.open(id, persona, some_sound(voice_seconds, 7), nullptr, false);
    apart.open(id, persona + std::to_string(100 + i), some_sound(voice_seconds, 7), nullptr, false);
  }
  alike.run();
  apart.run();
  for (auto round = 0; round < rounds; ++round) {
    for (auto* hand : {&alike, &apart}) {
      const auto begin = cpu_ms();
      for (auto u = 0; u < units; ++u) {
        for (auto i = 0; i < sessions; ++i)
          hand->unit(static_cast<session_id>(i), sounds[static_cast<std::size_t>(i + u) % 40]);
        hand->run();
      }
      std::cout << std::fixed << std::setprecision(3) << (hand == &alike ? "one prompt " : ", each its own ")
                << (cpu_ms() - begin) / (units * sessions);
    }
    std::cout << '\n';
  }
  return 0;
}

int churn(int sessions, int at_a_time) {
  stage_hand hand(at_a_time);
  constexpr auto prompts = 40; // more than the cache keeps
  std::vector<pcm> sounds;
  for (auto i = 0; i < prompts; ++i) sounds.push_back(some_sound(1, i));
  const auto step = std::max(sessions / 10, 1);
  std::cout << "sessions that have come and gone, each with a unit; " << at_a_time << " at a time, " << prompts / 2 + 1
            << " prompts, one of them every other time, a voice in every tenth\n";
  const auto report = [&](int done) {
    std::cout << std::fixed << std::setprecision(1) << std::setw(6) << done << "  resident " << resident_mib()
              << " MiB, pages held " << hand.held_pages() << ", prompts shared " << hand.capacity().prompt_hits
              << ", made " << hand.capacity().prompt_misses << std::endl;
  };
  report(0);
  auto reported = 0;
  for (auto done = 0; done < sessions;) {
    const auto batch = std::min(at_a_time, sessions - done);
    for (auto i = done; i < done + batch; ++i) {
      const auto prompt = i % 2 == 0 ? i % prompts : 1; // half of the sessions share prompt 1
      const auto own = i % 10 == 0 ? sounds[static_cast<std::size_t>(prompt)] : nullptr;
      hand.open(static_cast<session_id>(i), persona + std::to_string(prompt), own, own, true);
      hand.unit(static_cast<session_id>(i), sounds[static_cast<std::size_t>(i * 7 % prompts)]);
    }
    hand.run();
    for (auto i = done; i < done + batch; ++i) hand.close(static_cast<session_id>(i));
    hand.run();
    done += batch;
    if (done / step > reported) {
      reported = done / step;
      report(done);
    }
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto number = [&](std::size_t at, double otherwise) {
    return words.size() > at ? std::strtod(words[at].c_str(), nullptr) : otherwise;
  };
  try {
    if (!words.empty() && words[0] == "prefix") return prefix(static_cast<int>(number(1, 50)), number(2, 15));
    if (!words.empty() && words[0] == "share") return share(static_cast<int>(number(1, 32)), number(2, 15));
    if (!words.empty() && words[0] == "churn")
      return churn(static_cast<int>(number(1, 10000)), static_cast<int>(number(2, 4)));
  } catch (const std::exception& problem) {
    std::cerr << "engine_life_bench: " << problem.what() << '\n';
    return 1;
  }
  std::cerr << "engine_life_bench: prefix or share [sessions] [voice seconds], or churn [sessions] [at a time]\n";
  return 2;
}
