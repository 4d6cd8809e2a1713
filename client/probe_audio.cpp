#include "base/read_file.hpp"
#include "client/latencies.hpp"
#include "client/playback_timeline.hpp"
#include "client/printable.hpp"
#include "client/probe.hpp"
#include "client/probe_session.hpp"
#include "client/video_reader.hpp"
#include "protocol/media/sound_file.hpp"
#include "protocol/media/wav.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <iomanip>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

namespace parley::client {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t unit_samples = 16000;

class audio_probe final : public probe_session {
public:
  /// What is played and shown. `samples` holds whole units; `pictures` has one per second, until they run out.
  struct material {
    std::vector<float> samples;
    std::string voice;
    std::vector<std::string> pictures = {};
  };

  audio_probe(std::vector<server_url> urls, const audio_probe_options& options, material what, std::ostream& out,
              std::ostream& err)
      : probe_session(std::move(urls), out, err), options_(options), samples_(std::move(what.samples)),
        voice_(std::move(what.voice)), pictures_(std::move(what.pictures)), pace_(io_),
        sent_at_(samples_.size() / unit_samples) {}

  void summarize() {
    if (answered_ == 0) return;
    std::string line = std::to_string(answered_) + ", " + std::to_string(spoken_) + " spoken, " +
                       std::to_string(answered_ - spoken_) + " listened";
    if (dropped_ > 0) line += ", " + std::to_string(dropped_) + " dropped";
    print_event("units", line);
    print_event("latency", "p50 " + milliseconds_text(measured_.quantile(0.5)) + ", p95 " +
                               milliseconds_text(measured_.quantile(0.95)) + ", max " +
                               milliseconds_text(measured_.quantile(1)));
    tell_first("first text", first_text_);
    tell_first("first sound", first_sound_);
    print_event("sound", sound_text());
  }

  bool answered() const { return answered_ > 0; }

  /// The session as heard, up to the end of its last second.
  std::vector<float> heard() const { return heard_.timeline(seconds(static_cast<double>(sent_at_.size()))); }

private:
  using seconds = latencies::seconds;

  /// When the first part of a unit's answer arrived, relative to when the unit was sent.
  struct first_time {
    std::size_t unit;
    seconds after;
  };

  std::string init_frame() const override {
    return encode_init({.spoken = spoken_dialect(),
                        .system_prompt = options_.system_prompt,
                        .force_listen_count = options_.force_listen_count,
                        .greedy = options_.greedy,
                        .seed = options_.seed,
                        .voice = voice_,
                        .resume = true});
  }

  void on_created(const server_message& event) override {
    print_event("session.created", printable_line(event.session_id));
    start_ = clock::now();
    send_unit();
  }

  void on_output(const server_message& event) override {
    // Legacy answers do not name their unit, but they come in order.
    const std::size_t unit = event.input > 0 ? static_cast<std::size_t>(event.input) : last_unit_ + 1;
    if (unit > sent_) return fail("an answer to a unit that was not sent");
    take(event, unit);
    if (!event.answers_unit) return;
    dropped_ = event.dropped_units;
    last_unit_ = unit;
    tell_answer(unit, clock::now() - sent_at_[unit - 1]);
    if (unit == sent_at_.size()) {
      expect_nothing();
      return close_session("user_stop");
    }
    if (unit == sent_) expect_nothing();
    if (options_.fast) send_unit();
  }

  void take(const server_message& event, std::size_t unit) {
    const auto now = clock::now();
    const first_time here{unit, now - sent_at_[unit - 1]};
    // With `fast`, answers are placed in time as if the seconds had been spoken at normal pace.
    const auto heard_at = options_.fast ? seconds(static_cast<double>(unit)) : seconds(now - start_);
    text_ += event.text;
    if (!event.text.empty() && !first_text_) first_text_ = here;
    if (!event.audio.empty() && !first_sound_) first_sound_ = here;
    heard_.take(heard_at, event.audio);
    sound_ += seconds(static_cast<double>(event.audio.size()) / listener::rate);
    if (event.end_of_turn) heard_.end_of_turn();
    if (event.type == server_event_type::listen) heard_.silence(heard_at);
    speaking_ = speaking_ || event.type == server_event_type::spoken;
  }

  void tell_answer(std::size_t unit, seconds latency) {
    ++answered_;
    spoken_ += speaking_ ? 1 : 0;
    measured_.add(latency);
    out_ << std::right << std::setw(4) << unit << "  " << std::left << std::setw(8) << (speaking_ ? "speak" : "listen")
         << std::right << std::setw(12) << milliseconds_text(latency);
    if (!text_.empty()) out_ << "  " << printable_line(text_);
    out_ << std::endl;
    if (sound_ > seconds(0)) {
      sounding_time_ += latency;
      all_sound_ += sound_;
    }
    text_.clear();
    sound_ = seconds(0);
    speaking_ = false;
  }

  void tell_first(const char* what, const std::optional<first_time>& when) {
    if (when)
      print_event(what, milliseconds_text(when->after) + " after second " + std::to_string(when->unit) + " was sent");
  }

  std::string sound_text() const {
    if (all_sound_ <= seconds(0)) return "nothing was heard";
    const auto& ear = heard_.ear();
    auto text = seconds_text(ear.heard_time()) + " heard of " + seconds_text(all_sound_);
    if (!options_.fast) text += ", " + std::to_string(ear.gaps()) + " gaps (" + milliseconds_text(ear.gap_time()) + ")";
    return text + ", real-time factor " + factor_text(sounding_time_ / all_sound_);
  }

  void send_unit() {
    if (stopped() || sent_ == sent_at_.size()) return; // a server may answer the same unit again and again
    const auto unit = std::span(samples_).subspan(sent_ * unit_samples, unit_samples);
    const auto picture = sent_ < pictures_.size() ? std::string_view(pictures_[sent_]) : std::string_view();
    sent_at_[sent_++] = clock::now();
    append(encode_append(spoken_dialect(), unit, false, picture));
    expect_answer();
    if (options_.fast || sent_ == sent_at_.size()) return;
    pace_.expires_at(start_ + std::chrono::seconds(sent_));
    pace_.async_wait([this](auto ec) {
      if (!ec) send_unit();
    });
  }

  protocol::dialect spoken_dialect() const {
    return options_.legacy ? protocol::dialect::legacy : protocol::dialect::current;
  }

  const audio_probe_options& options_;
  const std::vector<float> samples_;
  const std::string voice_;
  const std::vector<std::string> pictures_;
  boost::asio::steady_timer pace_;
  std::vector<clock::time_point> sent_at_; ///< one entry per unit
  clock::time_point start_;
  std::size_t sent_ = 0;
  std::size_t last_unit_ = 0;
  std::string text_;
  seconds sound_{0}; ///< in this unit
  bool speaking_ = false;
  int answered_ = 0;
  int spoken_ = 0;
  std::int64_t dropped_ = 0;
  latencies measured_;
  playback_timeline heard_{listener::seconds(usual_playback_lead)};
  std::optional<first_time> first_text_, first_sound_;
  seconds sounding_time_{0}; ///< total latency of the answers with sound
  seconds all_sound_{0};
};

/// Prints one line on `err` and returns the exit status of a wrong option.
int refuse(std::ostream& err, const std::string& why) {
  err << "parley probe: " << why << std::endl;
  return 2;
}

/// The sound that the options name, or what is wrong with them.
tl::expected<audio_probe::material, std::string> read_sound(const audio_probe_options& options) {
  if (options.wav.empty()) return tl::unexpected<std::string>("--wav is missing");
  const auto file = base::read_file(options.wav);
  if (!file) return tl::unexpected("--wav: cannot read " + options.wav);
  auto samples = protocol::read_sound(*file);
  if (!samples) return tl::unexpected("--wav: " + options.wav + ": " + samples.error());
  if (samples->empty()) return tl::unexpected("--wav: " + options.wav + " holds no sound");
  std::string voice;
  if (!options.voice.empty()) {
    auto bytes = base::read_file(options.voice);
    if (!bytes || !protocol::is_readable_sound(base::kind_of(*bytes)))
      return tl::unexpected("--voice: " + options.voice +
                            " is no file of sound that is read: " + std::string(protocol::readable_sounds) + " are");
    voice = std::move(*bytes);
  }
  // The last second is padded with silence, because an incomplete unit would never be answered.
  const auto units = (samples->size() + unit_samples - 1) / unit_samples + static_cast<std::size_t>(options.listen);
  samples->resize(units * unit_samples, 0.0f);
  return audio_probe::material{std::move(*samples), std::move(voice)};
}

int converse(std::vector<server_url> urls, const audio_probe_options& options, audio_probe::material what,
             std::string_view mode, std::ostream& out, std::ostream& err) {
  audio_probe probe(std::move(urls), options, std::move(what), out, err);
  const int status = probe.run(mode);
  probe.summarize();
  return !probe.answered() || save_heard(options.save, probe.heard(), out, err) ? status : 1;
}

} // namespace

int probe_audio(const audio_probe_options& options, std::ostream& out, std::ostream& err) {
  auto urls = parse_server_urls(options.url, options.key, options.ca_file);
  if (!urls) return refuse(err, "--url: " + urls.error());
  auto what = read_sound(options);
  if (!what) return refuse(err, what.error());
  return converse(std::move(*urls), options, std::move(*what), "audio", out, err);
}

int probe_video(const video_probe_options& options, std::ostream& out, std::ostream& err) {
  auto urls = parse_server_urls(options.url, options.key, options.ca_file);
  if (!urls) return refuse(err, "--url: " + urls.error());
  auto from = options;
  std::optional<video_reader> taken_apart;
  if (!options.video.empty()) {
    auto parts = take_apart(options.video);
    if (!parts) return refuse(err, "--video: " + parts.error());
    taken_apart.emplace(std::move(*parts));
    from.frames = taken_apart->frames();
    from.wav = taken_apart->wav();
  }
  auto what = read_sound(from);
  if (!what) return refuse(err, what.error());
  auto pictures = read_pictures(from.frames);
  if (!pictures) return refuse(err, "--frames: " + pictures.error());
  what->pictures = std::move(*pictures);
  return converse(std::move(*urls), options, std::move(*what), "video", out, err);
}

} // namespace parley::client
