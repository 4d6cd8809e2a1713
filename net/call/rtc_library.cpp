#include "net/call/media_transport.hpp"
#include "net/logger.hpp"
#include "protocol/call/answer.hpp"

#include <chrono>
#include <exception>
#include <mutex>
#include <rtc/rtc.hpp>
#include <stdexcept>
#include <utility>

// Calls by libdatachannel: libjuice's ICE, all on one UDP port and one thread, OpenSSL's DTLS, libsrtp and usrsctp.
namespace parley::net {
namespace {

constexpr const char* channel_label = "oai-events";
constexpr unsigned library_threads = 2;
constexpr std::chrono::seconds most_cleanup{5};
constexpr std::size_t least_mtu = 1'280; ///< of IPv6

void pass_on(rtc::LogLevel, const std::string& message) {
  log()->debug("media: {}", message);
}

/// Runs what a listener does, for a library whose threads must not see exceptions.
template<class Work>
void guarded(const std::weak_ptr<media_listener>& listener, Work work) noexcept {
  try {
    if (const auto live = listener.lock()) work(*live);
  } catch (const std::exception& problem) {
    log()->error("a call failed: {}", problem.what());
  } catch (...) {
    log()->error("a call failed");
  }
}

class rtc_transport final : public media_transport {
public:
  rtc_transport(const rtc::Configuration& how, const media_options& where, const media_offer& offer,
                std::weak_ptr<media_listener> listener)
      : listener_(std::move(listener)), peer_(std::make_shared<rtc::PeerConnection>(how)) {
    rtc::Description::Audio sound(offer.mid, rtc::Description::Direction::SendRecv);
    sound.addOpusCodec(offer.payload_type, "minptime=10;useinbandfec=1");
    sound.addSSRC(offer.source, "parley", "parley", "sound");
    track_ = peer_->addTrack(sound);
    track_->setMediaHandler(std::make_shared<rtc::RtcpReceivingSession>());
    track_->onMessage(
        [to = listener_](const rtc::binary& packet) {
          guarded(to, [&](media_listener& live) { live.on_rtp(packet); });
        },
        [](const rtc::string&) {});
    track_->onOpen([to = listener_] { guarded(to, [](media_listener& live) { live.on_progress(); }); });
    peer_->onStateChange([to = listener_](rtc::PeerConnection::State now) {
      using state = rtc::PeerConnection::State;
      guarded(to, [&](media_listener& live) {
        if (now == state::Failed || now == state::Closed) return live.on_lost();
        live.on_progress();
      });
    });
    peer_->onDataChannel([this](const std::shared_ptr<rtc::DataChannel>& channel) { take(channel); });
    peer_->onGatheringStateChange(
        [to = listener_, from = std::weak_ptr(peer_), where](rtc::PeerConnection::GatheringState now) {
          if (now != rtc::PeerConnection::GatheringState::Complete) return;
          guarded(to, [&](media_listener& live) {
            const auto peer = from.lock();
            const auto answer = peer ? peer->localDescription() : std::nullopt;
            if (!answer) return live.on_lost();
            live.on_answer(protocol::call::told_at(std::string(*answer), where.addresses, where.port));
          });
        });
    peer_->setRemoteDescription({offer.sdp, rtc::Description::Type::Offer});
  }

  ~rtc_transport() override {
    track_->resetCallbacks();
    peer_->resetCallbacks();
    {
      const std::lock_guard lock(mutex_);
      if (channel_) channel_->resetCallbacks();
    }
    peer_->close();
  }

  bool is_connected() const override { return track_->isOpen(); }

  bool has_room() const override {
    const auto open = channel();
    return open && open->isOpen() && open->bufferedAmount() == 0;
  }

  bool send_text(const std::string& text) override {
    const auto open = channel();
    if (!open || !open->isOpen() || text.size() > open->maxMessageSize()) return false;
    try {
      open->send(text);
      return true;
    } catch (const std::exception& problem) { // it has just been closed
      log()->debug("a call's event was not sent: {}", problem.what());
      return false;
    }
  }

  void send_rtp(std::span<const std::byte> packet) override {
    try {
      if (track_->isOpen()) track_->send(packet.data(), packet.size());
    } catch (const std::exception& problem) {
      log()->debug("a call's sound was not sent: {}", problem.what());
    }
  }

private:
  std::shared_ptr<rtc::DataChannel> channel() const {
    const std::lock_guard lock(mutex_);
    return channel_;
  }

  /// The client opens one channel of that name; others get nobody.
  void take(const std::shared_ptr<rtc::DataChannel>& opened) {
    {
      const std::lock_guard lock(mutex_);
      if (channel_ || opened->label() != channel_label) return opened->close();
      channel_ = opened;
    }
    const auto tell = [to = listener_] { guarded(to, [](media_listener& live) { live.on_progress(); }); };
    opened->onOpen(tell);
    opened->onBufferedAmountLow(tell);
    opened->onClosed([to = listener_] { guarded(to, [](media_listener& live) { live.on_lost(); }); });
    opened->onMessage(
        [to = listener_](const rtc::binary&) { guarded(to, [](media_listener& live) { live.on_message({}, true); }); },
        [to = listener_](rtc::string text) {
          guarded(to, [&](media_listener& live) { live.on_message(std::move(text), false); });
        });
    tell();
  }

  const std::weak_ptr<media_listener> listener_;
  const std::shared_ptr<rtc::PeerConnection> peer_;
  std::shared_ptr<rtc::Track> track_;
  mutable std::mutex mutex_;
  std::shared_ptr<rtc::DataChannel> channel_;
};

class rtc_library final : public media_library {
public:
  explicit rtc_library(const media_options& options) : where_(options) {
    static std::once_flag once;
    std::call_once(once, [] {
      rtc::InitLogger(rtc::LogLevel::Warning, pass_on); // below it, whatever strangers send would be told
      rtc::SetThreadPoolSize(library_threads);
    });
    const bool everywhere = options.host.empty() || options.host == "0.0.0.0" || options.host == "::";
    if (!everywhere) how_.bindAddress = options.host;
    how_.enableIceUdpMux = true;
    how_.portRangeBegin = how_.portRangeEnd = options.port;
    how_.maxMessageSize = most_channel_message;
    how_.mtu = least_mtu;
    how_.forceMediaTransport = true;
  }

  /// Ends the library's threads, once the last call of the process is gone.
  ~rtc_library() override { rtc::Cleanup().wait_for(most_cleanup); }

  std::unique_ptr<media_transport> begin(const media_offer& offer, std::weak_ptr<media_listener> listener) override {
    try {
      return std::make_unique<rtc_transport>(how_, where_, offer, std::move(listener));
    } catch (const std::runtime_error&) {
      throw;
    } catch (const std::exception& problem) {
      throw std::invalid_argument(problem.what());
    }
  }

private:
  const media_options where_;
  rtc::Configuration how_;
};

} // namespace

std::unique_ptr<media_library> make_media_library(const media_options& options) {
  return std::make_unique<rtc_library>(options);
}

} // namespace parley::net
