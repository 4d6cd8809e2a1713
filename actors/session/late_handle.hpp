#pragma once

#include "actors/gateway_api.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace parley::actors {

/// A handle whose session is still being taken up. What arrives meanwhile waits; how much that can be is bounded by the
/// connection's credit, because nothing of it is `taken`. Thread-safe.
class late_session {
public:
  /// The session is there; or it is not, if null.
  void found(std::unique_ptr<session_handle> handle) {
    const std::lock_guard lock(mutex_);
    handle_ = std::move(handle);
    known_ = true;
    for (auto& each : waiting_)
      if (handle_) each(*handle_);
    waiting_.clear();
  }

  void pass(std::function<void(session_handle&)> what) {
    const std::lock_guard lock(mutex_);
    if (handle_)
      what(*handle_);
    else if (!known_)
      waiting_.push_back(std::move(what));
  }

private:
  std::mutex mutex_;
  bool known_ = false;
  std::unique_ptr<session_handle> handle_;
  std::vector<std::function<void(session_handle&)>> waiting_;
};

/// The connection's end of it.
class late_handle final : public session_handle {
public:
  explicit late_handle(std::shared_ptr<late_session> session) : session_(std::move(session)) {}

  void text(std::string&& frame) override {
    session_->pass([text = std::move(frame)](session_handle& to) mutable { to.text(std::move(text)); });
  }
  void binary() override {
    session_->pass([](session_handle& to) { to.binary(); });
  }
  void gone() override {
    session_->pass([](session_handle& to) { to.gone(); });
  }

private:
  const std::shared_ptr<late_session> session_;
};

} // namespace parley::actors
