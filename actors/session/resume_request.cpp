#include "actors/session/resume_request.hpp"

#include "base/assert.hpp"
#include "protocol/codec/server_codec.hpp"

#include <utility>

namespace parley::actors {

std::shared_ptr<client_link> resume_request::take() {
  PARLEY_ASSERT(link_, "an offer is taken or refused once");
  meters_.resumes(true).Increment();
  return std::exchange(link_, nullptr);
}

void resume_request::refuse(const protocol::error& why) {
  PARLEY_ASSERT(link_, "an offer is taken or refused once");
  meters_.resumes(false).Increment();
  const auto link = std::exchange(link_, nullptr);
  const auto& known = protocol::traits(why.code);
  link->send(std::make_shared<const std::string>(protocol::encode(protocol::error_event{why.code, why.message}, {})));
  link->close(known.close_code, std::string(known.wire));
}

void resume_request::superseded() {
  PARLEY_ASSERT(link_, "an offer is taken or refused once");
  meters_.resumes(false).Increment();
  std::exchange(link_, nullptr)->close(1008, std::string(continues_elsewhere));
}

} // namespace parley::actors
