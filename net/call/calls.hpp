#pragma once

#include "actors/gateway_api.hpp"
#include "net/access/admission.hpp"
#include "net/call/call_player.hpp"
#include "net/call/media_transport.hpp"
#include "net/call_acceptor.hpp"
#include "net/routes/http_message.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace parley::net {

struct service;
class call_session;

/// All calls of a server (`POST /v1/realtime/calls`). Thread-safe.
class calls final : public call_acceptor {
public:
  /// `io`: runs the calls. `media`: not null. All must outlive it.
  calls(boost::asio::io_context& io, service& shared, std::unique_ptr<media_library> media);
  ~calls() override;

  void accept(protocol::call::offer offer, actors::connection_info info,
              std::shared_ptr<admission::reservation> reservation, std::function<void(http_reply)> respond) override;
  end_answer hang_up(const std::string& id, const actors::principal& who) override;
  void stop() override;

  /// Sessions that outlive the server still have it.
  const std::shared_ptr<playout_clock>& clock() const { return clock_; }

  // ---- for its calls

  /// Makes a transport on a thread that may take its time; null if that fails.
  void begin(media_offer offer, std::weak_ptr<media_listener> listener,
             std::function<void(std::shared_ptr<media_transport>)> made);

  /// The end of a transport, likewise.
  void end(std::shared_ptr<media_transport> transport);
  void forget(const std::string& id);

private:
  /// Has it done by the thread that may take its time; drops it when that has ended.
  void later(std::function<void()> work);

  struct entry {
    std::shared_ptr<call_session> call; ///< lives until it has ended
    std::string key;                    ///< name of the API key
  };

  boost::asio::io_context& io_;
  service& shared_;
  const std::unique_ptr<media_library> media_;
  const std::shared_ptr<playout_clock> clock_ = std::make_shared<playout_clock>();
  std::mutex mutex_;
  std::map<std::string, entry> all_;
  bool stopped_ = false;
  std::optional<boost::asio::thread_pool>
      makers_; ///< one thread, from the first call on. Last: what it runs uses the rest
};

} // namespace parley::net
