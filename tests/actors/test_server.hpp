#pragma once

#include "actors/server_core.hpp"
#include "tests/support/recording_link.hpp"
#include "tests/support/stub_engine.hpp"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace parley::tests {

/// A connection to a server, without a socket.
struct test_client {
  std::shared_ptr<recording_link> link;
  std::unique_ptr<actors::session_handle> handle;

  void send_text(std::string frame) { handle->text(std::move(frame)); }

  /// Sends `session.init`; returns `session.created`.
  nlohmann::json init(const std::string& payload = "{}");

  /// Sends one second of silence; returns the next event of the type `answer`.
  nlohmann::json step(const std::string& answer = "response.output.delta");

  /// Disconnects without saying goodbye.
  void vanish() { handle->gone(); }

  /// Sends session.close, waits for the answer and returns the reason.
  std::string close_session();
};

/// An input.append with one second of silence, or as many samples as requested.
std::string append_frame(std::size_t samples = 16'000, bool force_listen = false);
std::string chat_frame(const std::string& words);

/// Answers a unit with its number, as text.
void count_units(stub_script& script);

/// Asks again and again; false if it does not hold in half a minute.
bool eventually(const std::function<bool()>& holds);

/// A server with stub engines. The scripts must outlive it.
class test_server {
public:
  explicit test_server(config::settings settings = quick_settings(),
                       actors::server_core::nodes others = actors::server_core::nodes::none);

  /// Starts a worker that follows `script`.
  void add(stub_script& script);

  /// Starts a worker and waits until it accepts sessions.
  void add_up(stub_script& script);

  /// `mode` is the one in the URL; empty = none.
  test_client connect(const std::string& mode = "audio", std::shared_ptr<recording_link> link = {},
                      std::optional<std::string> session_id = {}, std::shared_ptr<void> place = {},
                      const std::string& key = "");

  /// A connection that resumes a session.
  test_client come_back(const std::string& session_id, const std::string& token,
                        std::optional<std::string> last_event_id = {}, const std::string& key = "");

  /// Waits for a worker in that state and returns its view.
  actors::worker_view wait_for(actors::worker_state state);

  /// The answer of GET /status.
  nlohmann::json status(actors::status_part part = actors::status_part::all);

  /// The value of a metric, with its labels, in GET /metrics; empty = there is none.
  std::string metric(const std::string& name);

  /// Waits until no session lives and every slot is free.
  bool all_free();

  actors::server_core& core() { return *core_; }

  static config::settings quick_settings();

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<actors::worker_view> news_;
  std::size_t heard_ = 0;
  std::unique_ptr<actors::server_core> core_;
};

} // namespace parley::tests
