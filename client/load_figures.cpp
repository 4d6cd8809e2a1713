#include "client/load_figures.hpp"

#include "protocol/json/writer.hpp"

#include <array>
#include <iomanip>
#include <sstream>
#include <utility>

namespace parley::client {
namespace {

using named_times = std::array<std::pair<const char*, latencies>, 9>;

named_times times_of(const load_figures& all) {
  return {{{"queue_done", all.queue_done},
           {"created", all.created},
           {"first text", all.first_text},
           {"first sound", all.first_sound},
           {"unit latency", all.unit_latency()},
           {"chat answer", all.whole_answer},
           {"barge-in", all.silenced},
           {"return", all.returned},
           {"sent late", all.lateness}}};
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2)
       << (whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0) << " %";
  return text.str();
}

std::string key_of(std::string name) {
  for (auto& c : name)
    if (c == ' ' || c == '-') c = '_';
  return name;
}

} // namespace

std::string error_name(std::string_view code) {
  std::string name(code.substr(0, 64));
  for (auto& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == ':';
    if (!plain) c = '_';
  }
  return name.empty() ? "unnamed" : name;
}

void load_figures::merge(const load_figures& other) {
  for (const auto count : {&load_figures::asked, &load_figures::held, &load_figures::completed, &load_figures::units,
                           &load_figures::answered, &load_figures::spoken, &load_figures::turns, &load_figures::dropped,
                           &load_figures::unanswered, &load_figures::missed, &load_figures::interruptions,
                           &load_figures::gaps, &load_figures::judged, &load_figures::violations})
    this->*count += other.*count;
  gap_seconds += other.gap_seconds;
  sound_seconds += other.sound_seconds;
  for (const auto& [code, count] : other.errors) errors[code] += count;
  if (failure.empty()) failure = other.failure;
  for (const auto times :
       {&load_figures::queue_done, &load_figures::created, &load_figures::first_text, &load_figures::first_sound,
        &load_figures::silenced, &load_figures::whole_answer, &load_figures::returned, &load_figures::lateness})
    (this->*times).add(other.*times);
  answers.insert(answers.end(), other.answers.begin(), other.answers.end());
}

latencies load_figures::unit_latency() const {
  latencies all;
  for (const auto& a : answers) all.add(latencies::seconds(a.latency));
  return all;
}

std::string load_table(const load_figures& all, const load_run& run) {
  std::ostringstream out;
  const auto line = [&](const char* name) -> std::ostream& { return out << std::left << std::setw(20) << name; };
  line("sessions") << all.asked << " requested, " << all.held << " held (" << run.most_at_once << " at once), "
                   << all.completed << " completed\n";
  line("units") << all.units << " sent, " << all.answered << " answered, " << all.spoken << " spoken, " << all.dropped
                << " dropped, " << all.unanswered << " unanswered\n";
  line("turns") << all.turns << ", " << all.interruptions << " interruptions\n\n";
  line("") << std::right << std::setw(8) << "count";
  for (const auto* head : {"p50", "p95", "p99", "max"}) out << std::setw(12) << head;
  out << '\n';
  for (const auto& [name, times] : times_of(all)) {
    line(name) << std::right << std::setw(8) << times.count();
    for (const auto share : {0.5, 0.95, 0.99, 1.0})
      out << std::setw(12) << (times.empty() ? "-" : milliseconds_text(times.quantile(share)));
    out << '\n';
  }
  out << '\n';
  const auto judged = static_cast<std::int64_t>(all.answers.size()) + all.unanswered;
  line("deadline misses") << all.deadline_misses() << " of " << judged << " ("
                          << share_text(all.deadline_misses(), judged) << ")\n";
  line("audio gaps") << all.gaps << ", together " << seconds_text(latencies::seconds(all.gap_seconds)) << ", in "
                     << seconds_text(latencies::seconds(all.sound_seconds)) << " of sound\n";
  if (all.judged > 0) line("rules broken") << "in " << all.violations << " sessions, of " << all.judged << " events\n";
  line("errors");
  if (all.errors.empty()) out << "none";
  for (auto it = all.errors.begin(); it != all.errors.end(); ++it)
    out << (it == all.errors.begin() ? "" : ", ") << it->first << ' ' << it->second;
  out << '\n';
  line("load generator") << seconds_text(latencies::seconds(run.cpu_seconds)) << " of CPU in "
                         << seconds_text(latencies::seconds(run.seconds)) << " on " << run.threads << " threads\n";
  return out.str();
}

std::string load_json(const load_figures& all, const load_run& run) {
  std::string text;
  protocol::json::object_writer out(text);
  out.number("seconds", run.seconds, 3);
  out.number("generator_cpu_seconds", run.cpu_seconds, 3);
  out.integer("generator_threads", run.threads);
  auto sessions = out.object("sessions");
  sessions.integer("asked", all.asked);
  sessions.integer("held", all.held);
  sessions.integer("at_once", run.most_at_once);
  sessions.integer("completed", all.completed);
  sessions.close();
  auto units = out.object("units");
  units.integer("sent", all.units);
  units.integer("answered", all.answered);
  units.integer("spoken", all.spoken);
  units.integer("dropped", all.dropped);
  units.integer("unanswered", all.unanswered);
  units.close();
  out.integer("turns", all.turns);
  out.integer("interruptions", all.interruptions);
  auto milliseconds = out.object("milliseconds");
  for (const auto& [name, times] : times_of(all)) {
    const auto key = key_of(name);
    auto one = milliseconds.object(key);
    one.integer("count", static_cast<std::int64_t>(times.count()));
    one.number("p50", times.quantile(0.5).count() * 1000, 3);
    one.number("p95", times.quantile(0.95).count() * 1000, 3);
    one.number("p99", times.quantile(0.99).count() * 1000, 3);
    one.number("max", times.quantile(1).count() * 1000, 3);
    one.close();
  }
  milliseconds.close();
  out.integer("deadline_misses", all.deadline_misses());
  auto sound = out.object("sound");
  sound.number("seconds", all.sound_seconds, 3);
  sound.integer("gaps", all.gaps);
  sound.number("gap_seconds", all.gap_seconds, 3);
  sound.close();
  if (all.judged > 0) {
    out.integer("events_judged", all.judged);
    out.integer("sessions_with_violations", all.violations);
  }
  auto errors = out.object("errors");
  for (const auto& [code, count] : all.errors) errors.integer(code, count);
  errors.close();
  out.close();
  return text + '\n';
}

} // namespace parley::client
