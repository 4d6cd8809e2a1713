#pragma once

#include "actors/guest/guest_mailbox.hpp"
#include "actors/messages.hpp"
#include "protocol/transcript.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace parley::actors {

using realtime_actor =
    caf::typed_actor<caf::reacts_to<client_frame>, caf::reacts_to<client_sound>, caf::reacts_to<client_binary>,
                     caf::reacts_to<client_gone>, caf::reacts_to<guest_event>, caf::reacts_to<guest_closed>,
                     caf::reacts_to<transcript_ready>, caf::reacts_to<drain_request>, caf::reacts_to<close_request>,
                     caf::reacts_to<timer_due>>;

/// A server's connections that speak OpenAI's Realtime API. Thread-safe.
class realtime_registry {
public:
  /// Held by its actor: whatever ends the actor removes the entry.
  class entry {
  public:
    entry(realtime_registry& registry, std::uint64_t number) : registry_(registry), number_(number) {}
    ~entry() {
      const std::lock_guard lock(registry_.mutex_);
      registry_.actors_.erase(number_);
    }
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;

  private:
    realtime_registry& registry_;
    std::uint64_t number_;
  };

  /// `key`: the name of the connection's API key.
  std::unique_ptr<entry> add(realtime_actor actor, std::string key) {
    const std::lock_guard lock(mutex_);
    actors_.emplace(++last_number_, record{std::move(actor), std::move(key)});
    return std::make_unique<entry>(*this, last_number_);
  }

  std::vector<realtime_actor> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<realtime_actor> out;
    out.reserve(actors_.size());
    for (const auto& [number, each] : actors_) out.push_back(each.actor);
    return out;
  }

  std::vector<realtime_actor> of_key(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    std::vector<realtime_actor> out;
    for (const auto& [number, each] : actors_)
      if (each.key == key) out.push_back(each.actor);
    return out;
  }

private:
  struct record {
    realtime_actor actor;
    std::string key;
  };

  mutable std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, record> actors_;
};

} // namespace parley::actors

// These never leave their process.
