#include "actors/resume_request.hpp"

#include "base/assert.hpp"
#include "protocol/codec/server_codec.hpp"

#include <utility>

namespace parley::actors {

std::shared_ptr<client_link> resume_request::release(bool resumed) {
  PARLEY_ASSERT(link_, "an offer is taken or refused once");
  meters_.resumes(resumed).Increment();
  return std::exchange(link_, nullptr);
}

std::shared_ptr<client_link> resume_request::take() {
  return release(true);
}

void resume_request::refuse(const protocol::error& why) {
  const auto link = release(false);
  const auto& known = protocol::traits(why.code);
  link->send(std::make_shared<const std::string>(protocol::encode(protocol::error_event{why.code, why.message}, {})));
  link->close(known.close_code, std::string(known.wire));
}

void resume_request::superseded() {
  release(false)->close(1008, std::string(continues_elsewhere));
}

} // namespace parley::actors
