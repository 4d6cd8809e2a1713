#include "client/load.hpp"

#include "base/read_file.hpp"
#include "client/load_connection.hpp"
#include "client/voice_connection.hpp"

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace parley::client {
namespace {

constexpr double patience = 20; ///< seconds after the end in which all clients must leave

tl::expected<protocol::mode, std::string> mode_named(const std::string& name) {
  if (name == "chat") return protocol::mode::chat;
  if (name == "audio") return protocol::mode::audio;
  if (name == "video") return protocol::mode::video;
  return tl::unexpected("--mode: " + name + " is none of chat, audio, video");
}

tl::expected<std::vector<std::string>, std::string> read_wavs(const load_options& options) {
  std::vector<std::string> wavs;
  for (const auto& path : options.wavs) {
    auto bytes = base::read_file(path);
    if (!bytes) return tl::unexpected("--wav: cannot read " + path);
    wavs.push_back(std::move(*bytes));
  }
  return wavs;
}

/// Makes the participant of a role; the thread that runs `io` writes to the figures.
using participant_maker = std::function<std::unique_ptr<load_participant>(boost::asio::io_context& io, load_world&,
                                                                          const load_scenario&, load_figures&)>;

/// Participants who share the material and speak through connections of that class.
template<class Connection, class Material>
participant_maker maker_of(Material material) {
  auto shared = std::make_shared<const Material>(std::move(material));
  return [shared](auto& io, auto& world, const auto& role, auto& into) {
    return std::make_unique<Connection>(io, world, *shared, role, into);
  };
}

tl::expected<participant_maker, std::string> own_participants(const load_options& options) {
  const auto wavs = read_wavs(options);
  if (!wavs) return tl::unexpected(wavs.error());
  std::string picture;
  if (!options.picture.empty()) {
    auto bytes = base::read_file(options.picture);
    if (!bytes) return tl::unexpected("--picture: cannot read " + options.picture);
    picture = std::move(*bytes);
  }
  auto made = load_material::make(*wavs, picture, options.prompts, options.max_new_tokens, options.habits);
  if (!made) return tl::unexpected("--wav: " + made.error());
  return maker_of<load_connection>(std::move(*made));
}

tl::expected<participant_maker, std::string> voice_participants(const load_options& options, const voice_wire& wire) {
  if (options.modes != std::vector<std::string>{"audio"})
    return tl::unexpected("--mode: there is only audio with --dialect " + options.dialect);
  const auto wavs = read_wavs(options);
  if (!wavs) return tl::unexpected(wavs.error());
  auto made = voice_material::make(*wavs, wire);
  if (!made) return tl::unexpected("--wav: " + made.error());
  return maker_of<voice_connection>(std::move(*made));
}

tl::expected<participant_maker, std::string> participants(const load_options& options) {
  if (options.dialect == "parley") return own_participants(options);
  if (options.dialect == "openai") return voice_participants(options, realtime_wire());
  if (options.dialect == "live") return voice_participants(options, live_wire());
  return tl::unexpected("--dialect: " + options.dialect + " is none of parley, openai, live");
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

/// One thread's connections. They live until all threads have ended.
struct thread_share {
  boost::asio::io_context io{1};
  load_figures figures;
  std::vector<std::unique_ptr<load_participant>> people;
};

/// Runs all clients to the end, and reports progress.
void run_all(std::vector<std::unique_ptr<thread_share>>& shares, load_world& world, std::size_t sessions,
             std::ostream& err) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t running = shares.size();
  std::vector<std::jthread> threads;
  threads.reserve(shares.size());
  for (auto& each : shares)
    threads.emplace_back([&, own = each.get()] {
      own->io.run_until(world.start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                          std::chrono::duration<double>(world.end + patience)));
      const std::lock_guard lock(mutex);
      --running;
      changed.notify_one();
    });
  // On a terminal the line is overwritten; a log gets a new line from time to time.
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const std::chrono::seconds between(terminal ? 1 : 10);
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, between, [&] { return running == 0; }))
    err << (terminal ? "\r" : "") << static_cast<int>(world.now()) << " s of " << static_cast<int>(world.end) << ", "
        << world.progress.held << " of " << sessions << " sessions held, " << world.progress.answers << " answers, "
        << world.progress.over << " sessions over" << (terminal ? "   " : "\n") << std::flush;
  if (terminal) err << '\n';
}

bool write_file(const std::string& path, const std::string& text, std::ostream& err) {
  if (path.empty()) return true;
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) err << "parley load: cannot write " << path << std::endl;
  return static_cast<bool>(file);
}

/// What is wrong with the numbers, if anything.
std::optional<std::string> objection(const load_options& options) {
  constexpr double longest = 1e6; // seconds, eleven days
  if (options.sessions < 1) return "--sessions must be 1 or more";
  if (!(options.seconds > 0 && options.seconds <= longest)) return "--seconds must be more than 0, and at most 1000000";
  if (!(options.ramp <= longest)) return "--ramp must be at most 1000000";
  const auto& habits = options.habits;
  const std::pair<const char*, double> lengths[] = {{"--jitter", habits.jitter},
                                                    {"--think", habits.think},
                                                    {"--pause", habits.pause},
                                                    {"--playback-lead", habits.playback_lead}};
  for (const auto& [name, seconds] : lengths)
    if (!(seconds >= 0 && seconds <= longest)) return std::string(name) + " must be 0 to 1000000";
  if (!(habits.listening >= 0 && habits.listening <= 1)) return "--listening must be 0 to 1";
  if (habits.speak_tokens < 0) return "--speak-tokens must not be negative";
  if (!(habits.barge_in >= 0 && habits.barge_in <= 1)) return "--barge-in must be 0 to 1";
  return std::nullopt;
}

} // namespace

int load(const load_options& options, std::ostream& out, std::ostream& err) {
  const auto refuse = [&err](const std::string& why) {
    err << "parley load: " << why << std::endl;
    return 2;
  };
  auto urls = parse_server_urls(options.url, options.key, options.ca_file);
  if (!urls) return refuse("--url: " + urls.error());
  if (const auto wrong = objection(options)) return refuse(*wrong);
  std::vector<protocol::mode> modes;
  for (const auto& name : options.modes) {
    const auto mode = mode_named(name);
    if (!mode) return refuse(mode.error());
    modes.push_back(*mode);
  }
  const auto make = participants(options);
  if (!make) return refuse(make.error());

  const auto ramp = options.ramp < 0 ? options.sessions / 100.0 : options.ramp;
  load_world world{std::move(*urls), options.habits, ramp + options.seconds, {}, {}};
  const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto threads = std::min(options.threads > 0 ? options.threads : cores, options.sessions);
  const auto roles = cast_roles(options.sessions, modes, options.mixed_dialects, ramp, options.seed);
  std::vector<std::unique_ptr<thread_share>> shares;
  shares.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) shares.push_back(std::make_unique<thread_share>());
  world.start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < roles.size(); ++i) {
    auto& own = *shares[i % shares.size()];
    own.people.push_back((*make)(own.io, world, roles[i], own.figures));
  }
  const auto cpu_before = cpu_seconds();
  run_all(shares, world, roles.size(), err);

  load_figures all;
  for (auto& each : shares) all.merge(each->figures);
  const load_run run{world.now(), cpu_seconds() - cpu_before, threads, world.progress.most_held};
  out << load_table(all, run) << std::flush;
  const bool written = write_file(options.json, load_json(all, run), err);
  if (!write_file(options.plot, load_plot(all, run), err) || !written) return 1;
  if (!all.failure.empty()) err << "parley load: " << all.failure << std::endl;
  if (all.held > 0) return 0;
  err << "parley load: none of " << all.asked << " sessions was created";
  for (const auto& [code, count] : all.errors) err << ", " << count << ' ' << code;
  err << std::endl;
  return 1;
}

} // namespace parley::client
