#pragma once

#include "protocol/guest/duplex_feed.hpp"
#include "protocol/guest/effects.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace parley::protocol::guest {

/// The one session of a guest, as far as all guests deal with it in the same way: it is opened, waits for a slot until a
/// time, is ready, and is closed; a duplex session is fed with sound and may be cut short. What the session says is read by
/// the guest. Pure: adds its effects to `Effects`, a vector of a variant that has those of effects.hpp, and which outlives it.
template<class Effects>
class session {
public:
  /// `most_units`: seconds of sound that may wait for a duplex session.
  explicit session(Effects& out, std::size_t most_units = 0) : out_(out), feed_(most_units) {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  // ---- its life

  /// None may be open. `give_up`: when it has waited long enough for a slot; none = never.
  void open(mode kind, init_event init, std::optional<time_point> give_up = std::nullopt) {
    open_ = true;
    begun_ = false;
    kind_ = kind;
    give_up_ = give_up;
    out_.emplace_back(open_session{++number_, kind});
    say(std::move(init));
    if (kind != mode::chat) feed_.begin();
  }

  bool is_open() const { return open_; }
  bool is_duplex() const { return open_ && kind_ != mode::chat; }
  bool is_chat() const { return open_ && kind_ == mode::chat; }

  /// Of the open one, or the last one.
  mode kind() const { return kind_; }

  /// Whether it is open and has its slot.
  bool ready() const { return open_ && begun_; }
  bool waits() const { return open_ && !begun_; }

  /// When it has to be given up; none = it is ready, or there is none.
  std::optional<time_point> give_up() const { return waits() ? give_up_ : std::nullopt; }

  /// Whether what comes from the session `number` is from the one that is open.
  bool heeds(std::uint64_t number) const { return open_ && number == number_; }

  /// It has its slot. False if it had one before: a session begins once.
  bool begin() { return !std::exchange(begun_, true); }

  void say(client_event event) { out_.emplace_back(to_session{number_, std::move(event)}); }
  void ask(std::shared_ptr<const deferred_turn> turn) { out_.emplace_back(turn_to_session{number_, std::move(turn)}); }

  /// `unused`: it did not get what it was opened for, because the client changed its mind.
  void close(bool unused = false) {
    if (!open_) return;
    say(close_event{"user_stop"});
    out_.emplace_back(drop_session{number_, unused});
    open_ = begun_ = false;
    response_.clear();
  }

  // ---- what a duplex session hears

  /// Takes samples at 16 kHz. True when the oldest had to be dropped for the first time, which the client is to be told.
  bool hear(std::span<const float> samples) { return feed_.hear(samples) > 0 && !std::exchange(overflow_told_, true); }

  /// False if it can't be told any more in this session.
  bool tell(conversation::role who, std::string text) { return feed_.tell(who, std::move(text)); }
  bool telling() const { return feed_.telling(); }
  void show(image_file picture) { feed_.show(std::move(picture)); }
  void keep_last(std::size_t samples) { feed_.keep_last(samples); }

  /// Sends what it may hear now. `speaking`: the model is.
  void feed(bool speaking) {
    while (auto append = feed_.next(speaking)) say(*std::move(append));
  }
  void answered() { feed_.answered(); }

  // ---- what a duplex session says

  /// Whether it is in the middle of a response.
  bool speaks() const { return !response_.empty(); }

  /// It goes on with this response.
  void speaks(std::string response) { response_ = std::move(response); }
  void falls_silent() { response_.clear(); }

  /// Its response is broken off: the rest is not wanted.
  void cut() {
    cut_ = std::exchange(response_, {});
    feed_.force_listen();
  }
  bool was_cut(std::string_view response) const { return response == cut_; }

private:
  Effects& out_;
  std::uint64_t number_ = 0; ///< of the open one, or the last one
  mode kind_ = mode::chat;
  bool open_ = false;
  bool begun_ = false;
  std::optional<time_point> give_up_;
  duplex_feed feed_;
  bool overflow_told_ = false;
  std::string response_;
  std::string cut_;
};

} // namespace parley::protocol::guest
