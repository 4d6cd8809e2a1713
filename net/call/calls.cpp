#include "net/call/calls.hpp"

#include "net/call/call_session.hpp"
#include "net/guarded_strand.hpp"
#include "net/logger.hpp"
#include "net/routes/refusals.hpp"
#include "net/service.hpp"
#include "protocol/ids.hpp"

#include <boost/asio/post.hpp>

#include <exception>
#include <random>
#include <utility>

namespace parley::net {

calls::calls(asio::io_context& io, service& shared, std::unique_ptr<media_library> media)
    : io_(io), shared_(shared), media_(std::move(media)) {}

calls::~calls() {
  stop();
  // Nothing runs any more, so those that are left may be ended from here.
  std::map<std::string, entry> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(all_);
  }
  for (const auto& [id, each] : left) each.call->abandon();
}

void calls::accept(protocol::call::offer offer, actors::connection_info info,
                   std::shared_ptr<admission::reservation> reservation, std::function<void(http_reply)> respond) {
  const auto owner = std::make_shared<connection_owner>();
  auto place = shared_.all.enter(info.group, owner);
  if (!place) return respond(server_busy("too many connections"));
  std::random_device device;
  protocol::random_source random = [&] { return (std::uint64_t{device()} << 32) | device(); };
  auto id = protocol::make_id(random, "rtc_");
  const auto key = info.key;
  const auto call = std::make_shared<call_session>(id, guarded_strand(io_, owner), std::move(*place),
                                                   std::move(reservation), shared_, *this);
  {
    const std::lock_guard lock(mutex_);
    all_.emplace(id, entry{call, key});
  }
  auto told = [respond, id](std::optional<std::string> answer) {
    if (!answer) return respond(completion_error({400, "invalid_offer", "no call came about with this offer", "sdp"}));
    http_reply reply{201, std::move(*answer), "application/sdp"};
    reply.location = "/v1/realtime/calls/" + id;
    respond(std::move(reply));
  };
  const auto source = static_cast<std::uint32_t>(random());
  asio::post(call->strand(),
             [call, offer = std::move(offer), info = std::move(info), source, told = std::move(told)]() mutable {
               call->run(std::move(offer), std::move(info), source, std::move(told));
             });
}

void calls::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  if (makers_) makers_->join();
}

void calls::later(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  if (!makers_) makers_.emplace(1);
  asio::post(*makers_, [work = std::move(work)] {
    try {
      work();
    } catch (const std::exception& problem) {
      log()->error("a call failed: {}", problem.what());
    }
  });
}

calls::end_answer calls::hang_up(const std::string& id, const actors::principal& who) {
  std::shared_ptr<call_session> call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(id);
    if (found == all_.end()) return end_answer::unknown;
    if (!who.sees_all && found->second.key != who.key) return end_answer::forbidden;
    call = found->second.call;
  }
  call->hang_up();
  return end_answer::ended;
}

void calls::begin(media_offer offer, std::weak_ptr<media_listener> listener,
                  std::function<void(std::shared_ptr<media_transport>)> made) {
  later([this, offer = std::move(offer), listener = std::move(listener), made = std::move(made)] {
    std::shared_ptr<media_transport> transport;
    try {
      transport = media_->begin(offer, listener);
    } catch (const std::exception& problem) {
      log()->debug("an offer of a call was refused: {}", problem.what());
    }
    made(std::move(transport));
  });
}

void calls::end(std::shared_ptr<media_transport> transport) {
  later([transport = std::move(transport)]() mutable { transport.reset(); });
}

void calls::forget(const std::string& id) {
  std::shared_ptr<call_session> last; // its end takes the lock again
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  last = std::move(found->second.call);
  all_.erase(found);
}

} // namespace parley::net
