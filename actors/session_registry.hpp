#pragma once

#include "actors/messages.hpp"
#include "protocol/events.hpp"
#include "protocol/session/session_machine.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace parley::actors {

/// Who owns a session.
struct session_owner {
  std::string address; ///< address of the client
  std::string key;     ///< name of its API key; empty without keys
  std::chrono::steady_clock::time_point since{};
};

/// A server's sessions by id. Thread-safe; only `wait_until_none_lives` blocks.
class session_registry {
public:
  /// A session's entry in the registry, held by its actor: whatever ends the actor removes the entry.
  class entry {
  public:
    entry(session_registry& registry, std::uint64_t number) : registry_(registry), number_(number) {}
    ~entry() { registry_.remove(number_); }
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;

    /// Reserves the ids by which clients and operators refer to the session: `id`, which a client may have requested,
    /// and the first unused id from `next_legacy`, so that no client can take an id that the server gives to others.
    /// Returns none if `id` belongs to a live session; the entry then has no ids.
    std::optional<std::string> claim(const std::string& id, const std::function<std::string()>& next_legacy) {
      return registry_.claim(number_, id, next_legacy);
    }

    void update(protocol::mode kind, protocol::session_state state) { registry_.update(number_, kind, state); }

    /// An offer has reached the session, which takes or refuses it.
    void offer_came(const resume_request& offer) { registry_.offer_came(number_, offer); }

    /// Accepts no more offers, and returns those still on their way, which the session must refuse.
    std::vector<std::shared_ptr<resume_request>> refuse_offers() { return registry_.refuse_offers(number_); }

  private:
    session_registry& registry_;
    std::uint64_t number_;
  };

  /// Adds a new session. The entry must not outlive the registry.
  std::unique_ptr<entry> add(session_actor session, session_owner whose = {});

  struct lookup {
    bool known = false;                   ///< such a session exists or existed
    std::string key;                      ///< its owner's key
    std::optional<session_actor> session; ///< set while it lives
  };
  /// Looks up the id of either dialect. Ids of closed sessions are remembered for a while.
  lookup find(const std::string& id) const;

  /// Keeps an offer for a live session of that owner until it reaches the session's actor, to which the caller must
  /// send it. Returns none if there is no such session; the caller must then refuse the offer.
  std::optional<session_actor> offer(const std::string& id, const std::string& key,
                                     std::shared_ptr<resume_request> link);

  /// All actors, including those of closed sessions.
  std::vector<session_actor> all() const;

  /// All actors of a key's sessions, whether they have an id yet or not.
  std::vector<session_actor> of_key(const std::string& key) const;

  struct view {
    std::string id;
    protocol::mode kind;
    protocol::session_state state;
    session_owner whose;
  };
  /// Live sessions that have an id, oldest first.
  std::vector<view> list() const;

  struct count {
    protocol::mode kind;
    protocol::session_state state;
    int sessions;
  };
  /// Number of live sessions by mode and state.
  std::vector<count> counts() const;

  /// Number of sessions that are not yet closed.
  std::size_t live() const;

  /// Waits until every session is closed. False on timeout.
  bool wait_until_none_lives(std::chrono::milliseconds most) const;

private:
  struct record {
    session_actor session;
    session_owner whose;
    std::vector<std::string> ids; ///< the current dialect's id comes first
    protocol::mode kind = protocol::mode::video;
    protocol::session_state state = protocol::session_state::queued;
    std::vector<std::shared_ptr<resume_request>> offers; ///< offers on their way to it
    bool takes_offers = true;
  };

  std::optional<std::string> claim(std::uint64_t number, const std::string& id,
                                   const std::function<std::string()>& next_legacy);
  void update(std::uint64_t number, protocol::mode kind, protocol::session_state state);
  void offer_came(std::uint64_t number, const resume_request& offer);
  std::vector<std::shared_ptr<resume_request>> refuse_offers(std::uint64_t number);
  void remove(std::uint64_t number);
  record& at(std::uint64_t number);
  void retire(record& of);

  mutable std::mutex mutex_;
  mutable std::condition_variable none_lives_;
  std::uint64_t last_number_ = 0;
  std::size_t live_ = 0;
  std::map<std::uint64_t, record> records_;
  std::unordered_map<std::string, std::uint64_t> live_ids_;
  std::unordered_map<std::string, std::string> past_ids_; ///< ids of the sessions closed last, with their keys
  std::deque<std::string> past_order_;
};

} // namespace parley::actors
