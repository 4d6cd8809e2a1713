#pragma once

#include "protocol/events.hpp"
#include "protocol/openai/shared/outgoing.hpp"
#include "protocol/time_point.hpp"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace parley::protocol::openai::realtime {

/// What a call is yet to hear of the sound that was sent to it, by the clock: it is heard at the pace of time, from when it was
/// sent or from the end of what was sent before. Says `output_audio_buffer.*` of responses.
class output_buffer {
public:
  explicit output_buffer(outgoing& out) : out_(out) {}

  /// Sound of a response, a part of this item, goes out.
  void play(const std::string& response_id, const std::string& item_id, pcm sound, time_point now);

  /// The response has ended: when all of it was heard, the buffer stops.
  void finished(const std::string& response_id, time_point now);

  /// An item that was cut off, and how much of it was heard.
  struct cut_item {
    std::string id;
    double heard_ms = 0;
  };

  /// Drops what was not heard yet. Returns the items that it was part of, oldest first.
  std::vector<cut_item> clear(time_point now);

  /// Whether something is being heard.
  bool plays() const { return !parts_.empty(); }

  /// Says what has begun and stopped by now.
  void tick(time_point now);
  std::optional<time_point> due() const;

  /// What is to be sent: sound, or null where all before it that is not heard yet must be dropped.
  std::vector<pcm> take() { return std::exchange(sent_, {}); }

private:
  /// What was sent of one item.
  struct part {
    std::string response_id;
    std::string item_id;
    double ms = 0;
    time_point begins;
    time_point ends;
    bool begun = false;    ///< told
    bool finished = false; ///< nothing of the response follows
  };

  void tell(std::string_view what, const std::string& response_id);
  bool is_last_of_response(std::size_t index) const;

  outgoing& out_;
  std::deque<part> parts_;
  std::string begun_; ///< the response whose beginning was told, and not its end
  std::vector<pcm> sent_;
};

} // namespace parley::protocol::openai::realtime
