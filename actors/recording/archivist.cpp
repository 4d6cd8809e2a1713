#include "actors/recording/archivist.hpp"

#include "actors/log/log_file.hpp"
#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "actors/recording/thread_priority.hpp"
#include "actors/unix_time.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace parley::actors {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes between_sweeps{1};
constexpr std::size_t all_of_them = 10'000'000;

bool may(const principal& who, const recording_facts& of) {
  return who.sees_all || who.key == of.key;
}

/// Whether a recording can have a file of that name. Names that lead out of its folder never qualify.
bool is_file_name(std::string_view name) {
  static constexpr std::array<std::string_view, 4> fixed{"input.wav", "output.wav", "events.jsonl", "meta.json"};
  if (std::find(fixed.begin(), fixed.end(), name) != fixed.end()) return true;
  constexpr std::string_view frames = "frames/";
  if (!name.starts_with(frames)) return false;
  name.remove_prefix(frames.size());
  return name.size() > 4 && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.';
         });
}

} // namespace

archivist::archivist(caf::actor_config& config, fs::path directory, recording_index index, retention keep,
                     recorder_feed& feed, recording_meter& counted)
    : archivist_actor::base(config), directory_(std::move(directory)), index_(std::move(index)), keep_(keep),
      feed_(feed), counted_(counted) {}

archivist::behavior_type archivist::make_behavior() {
  log_exceptions(this);
  lower_thread_priority();
  count();
  send(this, archive_swept{});
  return {
      [this](const recording_noted& news) { attempt([&] { note(news); }, [] {}); },
      [this](const recordings_asked& question) { attempt([&] { list(question); }, [&] { question.done("[]"); }); },
      [this](const recording_file_asked& question) {
        attempt([&] { fetch(question); }, [&] { question.done(recording_answer::failed, nullptr); });
      },
      [this](const recording_unwanted& order) {
        attempt([&] { remove(order); }, [&] { order.done(recording_answer::failed); });
      },
      [this](const archive_swept&) {
        attempt([&] { sweep(); }, [] {});
        delayed_send(this, between_sweeps, archive_swept{});
      },
      [this](const archivist_stops&) { quit(); },
  };
}

/// Runs `work`; if it throws, logs why and runs `otherwise`, which sends the failure reply.
template<class Work, class Otherwise>
void archivist::attempt(Work work, Otherwise otherwise) {
  try {
    work();
  } catch (const std::exception& problem) {
    if (const auto more = complaints_.pass(std::chrono::steady_clock::now()))
      log()->warn("recordings: {} ({} more in the last minute)", problem.what(), *more);
    otherwise();
  }
}

void archivist::note(const recording_noted& news) {
  index_.put(news.facts);
  count();
  if (keep_.bytes > 0 && index_.sum().bytes > keep_.bytes) sweep();
}

void archivist::list(const recordings_asked& question) {
  const auto& who = question.who;
  const auto rows = index_.list(who.sees_all ? std::nullopt : std::optional<std::string_view>(who.key), question.most);
  std::string out = "[";
  for (const auto& each : rows) {
    if (each.state == "recording") continue;
    if (out.size() > 1) out += ',';
    out += to_json(each);
  }
  question.done(out + ']');
}

void archivist::fetch(const recording_file_asked& question) {
  const auto found = index_.find(question.id);
  if (!found || !is_file_name(question.file)) return question.done(recording_answer::unknown, nullptr);
  if (!may(question.who, *found)) return question.done(recording_answer::forbidden, nullptr);
  std::error_code why;
  auto file = base::open_file::open(directory_ / found->folder / question.file, why);
  if (file) return question.done(recording_answer::done, std::make_shared<const base::open_file>(std::move(*file)));
  if (why == std::errc::no_such_file_or_directory || why == std::errc::filename_too_long)
    return question.done(recording_answer::unknown, nullptr);
  throw fs::filesystem_error(question.file, why);
}

void archivist::remove(const recording_unwanted& order) {
  const auto found = index_.find(order.id);
  if (!found) return order.done(recording_answer::unknown);
  if (!may(order.who, *found)) return order.done(recording_answer::forbidden);
  if (found->state == "recording") return order.done(recording_answer::in_use);
  if (!erase(*found)) return order.done(recording_answer::failed);
  count();
  order.done(recording_answer::done);
}

void archivist::sweep() {
  const auto gone = to_forget(index_.list({}, all_of_them), keep_, unix_ms());
  const auto erased = std::count_if(gone.begin(), gone.end(), [this](const auto& each) { return erase(each); });
  if (erased == 0) return;
  log()->info("{} old recordings removed", erased);
  count();
}

bool archivist::erase(const recording_facts& which) {
  std::error_code problem;
  const auto folder = directory_ / which.folder;
  fs::remove_all(folder, problem);
  if (problem) {
    if (const auto more = complaints_.pass(std::chrono::steady_clock::now()))
      log()->warn("{} cannot be removed: {} ({} more in the last minute)", folder.string(), problem.message(), *more);
    return false;
  }
  // Removes the folder of the day if this was its last recording, except today's, which may get more.
  if (folder.parent_path().filename() != utc_date(unix_ms())) fs::remove(folder.parent_path(), problem);
  index_.remove(which.id);
  feed_.forgotten(which.id);
  return true;
}

void archivist::count() {
  const auto sum = index_.sum();
  counted_.kept.Set(static_cast<double>(sum.recordings));
  counted_.kept_bytes.Set(static_cast<double>(sum.bytes));
}

} // namespace parley::actors
