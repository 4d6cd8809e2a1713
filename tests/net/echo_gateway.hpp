#pragma once

#include "actors/gateway_api.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace parley::net {

/// A server core whose sessions echo every frame until a test says otherwise; those of guests say nothing until then. It records
/// every call.
class echo_gateway final : public actors::gateway_api {
public:
  struct session {
    actors::connection_info info;
    std::shared_ptr<actors::client_link> link;
    std::shared_ptr<actors::guest_link> guest; ///< instead of `link`, of a client inside the process
    std::vector<std::string> frames;
    std::vector<protocol::client_event> said; ///< by a guest
    int binaries = 0;
    bool gone = false;
  };

  std::unique_ptr<actors::session_handle> admit(actors::connection_info info,
                                                std::shared_ptr<actors::client_link> link) override;
  std::unique_ptr<actors::guest_handle> admit_guest(actors::connection_info info,
                                                    std::shared_ptr<actors::guest_link> link) override;
  actors::readiness ready() const override;
  std::string model() const override { return served; }
  bool loading() const override { return still_loading; }
  void status(std::function<void(std::string json)> done, actors::status_part part = actors::status_part::all) override;
  void metrics(std::function<void(std::string text)> done) override;
  std::string sessions(const actors::principal& who) override;
  void close_session(std::string id, std::string reason, actors::principal who,
                     std::function<void(actors::close_answer)> done) override;
  void close_sessions_of(const std::string& key, const std::string& reason) override;
  void move_session(std::string id, std::function<void(bool known)> done) override;
  void drain_worker(std::uint64_t id, bool drain, std::function<void(bool known)> done) override;
  actors::recordings_api* recordings() override { return recorded; }

  /// Runs `look` under the lock whenever something happens, until it returns true. False after ten seconds.
  bool eventually(const std::function<bool(const std::vector<std::shared_ptr<session>>&)>& look);

  /// Session number `index`, copied under the lock.
  session at(std::size_t index);
  std::size_t open();
  std::size_t begun(); ///< sessions so far, whether they are gone or not

  // Set before the server starts.
  std::function<void(session&, std::string&&)> on_text;                 ///< replaces the echo; called under the lock
  std::function<void(session&, const protocol::client_event&)> on_said; ///< likewise, for guests
  actors::readiness readiness{true, ""};
  std::string status_json = R"({"workers":[]})";
  bool answers_status = true;
  actors::recordings_api* recorded = nullptr; ///< null = nothing is recorded
  bool still_loading = false;
  std::string served; ///< the workers' model
  std::string known_session = "sess_known";
  std::string known_key;                 ///< the key that owns the known session
  std::optional<bool> draining;          ///< the last value that drain_worker set for worker 1
  std::string close_reason;              ///< from the last close_session
  std::vector<std::string> removed_keys; ///< from close_sessions_of

private:
  class handle;
  class guest_handle;

  /// The connection has ended.
  void let_go(session& of);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<session>> sessions_;
};

} // namespace parley::net
