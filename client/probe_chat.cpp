#include "base/read_file.hpp"
#include "client/latencies.hpp"
#include "client/playback_timeline.hpp"
#include "client/printable.hpp"
#include "client/probe.hpp"
#include "client/probe_session.hpp"

#include <chrono>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

namespace parley::client {
namespace {

using clock = std::chrono::steady_clock;

class chat_probe final : public probe_session {
public:
  /// The files that the prompt is about.
  struct material {
    std::vector<std::string> images, sounds;
  };

  chat_probe(std::vector<server_url> urls, const chat_probe_options& options, material what, std::ostream& out,
             std::ostream& err)
      : probe_session(std::move(urls), out, err), options_(options), what_(std::move(what)) {}

  const std::vector<float>& heard() const { return heard_; }

private:
  std::string init_frame() const override { return encode_init({.resume = true}); }

  // Does not print the id, so that the same prompt and seed give the same output, except for times.
  void on_created(const server_message&) override {
    asked_ = clock::now();
    append(encode_chat({.prompt = options_.prompt,
                        .images = std::move(what_.images),
                        .sounds = std::move(what_.sounds),
                        .system = options_.system,
                        .max_new_tokens = options_.max_new_tokens,
                        .greedy = options_.greedy,
                        .seed = options_.seed,
                        .streaming = options_.stream,
                        .tts = !options_.save.empty()}));
    expect_answer();
  }

  void on_output(const server_message& event) override {
    const auto now = clock::now();
    if (!event.audio.empty()) {
      if (!first_sound_) first_sound_ = now;
      last_sound_ = now;
      heard_.insert(heard_.end(), event.audio.begin(), event.audio.end());
    }
    if (event.type != server_event_type::response_done) {
      if (!first_ && !event.text.empty()) first_ = now;
      out_ << printable(event.text) << std::flush;
      return expect_answer();
    }
    if (!options_.stream) out_ << printable(event.text);
    out_ << std::endl;
    std::string line = printable_line(event.reason) + ", ";
    if (first_) line += "first text " + milliseconds_text(*first_ - asked_) + ", ";
    if (first_sound_) line += "first sound " + milliseconds_text(*first_sound_ - asked_) + ", ";
    print_event("response.done", line + "whole answer " + milliseconds_text(now - asked_));
    if (!options_.save.empty()) print_event("sound", sound_text());
    if (event.reason == "error" || event.reason == "cancelled") return fail("the answer is incomplete");
    close_session("turn_done");
  }

  std::string sound_text() const {
    if (heard_.empty()) return "nothing was heard";
    const latencies::seconds sound(static_cast<double>(heard_.size()) / listener::rate);
    return seconds_text(sound) + ", real-time factor " + factor_text((last_sound_ - asked_) / sound);
  }

  const chat_probe_options& options_;
  material what_;
  clock::time_point asked_;
  std::optional<clock::time_point> first_, first_sound_;
  clock::time_point last_sound_;
  std::vector<float> heard_;
};

/// Appends the files' contents. If a file cannot be read, reports it on `err` and returns false.
bool read_files(const std::vector<std::string>& paths, std::string_view option, std::vector<std::string>& into,
                std::ostream& err) {
  for (const auto& path : paths) {
    auto bytes = base::read_file(path);
    if (!bytes || bytes->empty()) {
      err << "parley probe: " << option << ": cannot read " << path << std::endl;
      return false;
    }
    into.push_back(*std::move(bytes));
  }
  return true;
}

} // namespace

int probe_chat(const chat_probe_options& options, std::ostream& out, std::ostream& err) {
  auto urls = parse_server_urls(options.url, options.key, options.ca_file);
  if (!urls) {
    err << "parley probe: --url: " << urls.error() << std::endl;
    return 2;
  }
  chat_probe::material what;
  if (!read_files(options.images, "--image", what.images, err) ||
      !read_files(options.sounds, "--audio", what.sounds, err))
    return 2;
  chat_probe probe(std::move(*urls), options, std::move(what), out, err);
  const int status = probe.run("chat");
  return probe.heard().empty() || save_heard(options.save, probe.heard(), out, err) ? status : 1;
}

} // namespace parley::client
