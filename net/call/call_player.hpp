#pragma once

#include "net/call/media_transport.hpp"
#include "protocol/call/playout.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace parley::net {

/// What one call hears: sound in, packets out, at the pace of the clock. Thread-safe.
class call_player {
public:
  /// `source`, `payload_type`: of the packets.
  call_player(std::uint32_t source, int payload_type);

  /// Where packets go from now on; null = nowhere.
  void send_to(std::shared_ptr<media_transport> transport);

  void add(protocol::pcm sound);
  void clear();

  /// Sends what is due. False: there is nothing left, until more is added.
  bool run(protocol::time_point now);

private:
  std::mutex mutex_;
  std::shared_ptr<media_transport> transport_;
  protocol::call::playout waiting_;
  protocol::call::opus_encoder encoder_;
  protocol::call::rtp_packet next_;
};

/// The clock of all calls: a thread that sends what they are to hear. There is none until it is needed.
class playout_clock {
public:
  playout_clock() = default;
  ~playout_clock();
  playout_clock(const playout_clock&) = delete;
  playout_clock& operator=(const playout_clock&) = delete;

  /// Runs it every 20 ms, until it has nothing left. Never waits.
  void start(std::weak_ptr<call_player> player);

private:
  void run();

  std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<std::weak_ptr<call_player>> fresh_;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace parley::net
