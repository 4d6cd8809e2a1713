#pragma once

#include "actors/house.hpp"
#include "tests/support/recording_link.hpp"
#include "tests/support/stub_engine.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace parley::tests {

/// A connection to a house without a socket.
struct test_client {
  std::shared_ptr<recording_link> link;
  std::unique_ptr<actors::session_inbox> inbox;

  void say(std::string frame) { inbox->text(std::move(frame)); }

  /// `session.init`, and back comes `session.created`.
  nlohmann::json init(const std::string& payload = "{}");

  /// One second of silence goes out; back comes the next event of that type.
  nlohmann::json step(const std::string& answer = "response.output.delta");

  /// Leaves without a word.
  void vanish() { inbox->gone(); }

  /// Says session.close and waits for the answer, gives back the reason.
  std::string say_goodbye();
};

/// One second of silence as input.append, or as much as is asked for.
std::string append_frame(std::size_t samples = 16'000, bool force_listen = false);
std::string chat_frame(const std::string& words);

/// A house with stub engines. The scripts outlive it.
class test_house {
public:
  explicit test_house(config::settings settings = quick_settings());

  /// Starts a worker that follows `script`.
  void add(stub_script& script);

  /// Starts it and waits until it takes sessions.
  void add_up(stub_script& script);

  /// `mode` as in the URL; empty = none.
  test_client connect(const std::string& mode = "audio", std::shared_ptr<recording_link> link = {},
                      std::optional<std::string> session_id = {}, std::shared_ptr<void> place = {});

  /// A connection that goes on with a session.
  test_client come_back(const std::string& session_id, const std::string& token,
                        std::optional<std::string> last_event_id = {}, const std::string& key = "");

  /// Waits for a worker in that state, gives back what is known of it.
  actors::worker_view wait_for(actors::worker_state state);

  /// GET /status.
  nlohmann::json status(actors::status_part part = actors::status_part::all);

  /// Waits until no session is live any more and every slot is free.
  bool all_free();

  actors::house& house() { return *house_; }

  static config::settings quick_settings();

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<actors::worker_view> news_;
  std::size_t heard_ = 0;
  std::unique_ptr<actors::house> house_;
};

} // namespace parley::tests
