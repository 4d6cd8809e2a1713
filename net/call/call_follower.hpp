#pragma once

#include "actors/gateway_api.hpp"
#include "net/call/call_session.hpp"

#include <memory>
#include <string>
#include <utility>

namespace parley::net {

/// The session of a call, as the connection of somebody sees it who follows it.
class call_follower final : public actors::session_handle {
public:
  /// `call`: null = it has ended.
  call_follower(const std::shared_ptr<call_session>& call, std::shared_ptr<actors::client_link> link)
      : call_(call), link_(std::move(link)) {
    call ? call->follow(link_) : link_->close(1000, call_session::ended_words);
  }

  void text(std::string&& frame) override {
    if (const auto call = call_.lock()) call->take(std::move(frame), link_);
  }
  void binary() override { link_->close(1003, "binary frames are not used"); }
  void gone() override {
    if (const auto call = call_.lock()) call->unfollow(link_);
  }

private:
  const std::weak_ptr<call_session> call_;
  const std::shared_ptr<actors::client_link> link_;
};

} // namespace parley::net
