#include "actors/offered_link.hpp"

#include "protocol/server_codec.hpp"

#include <utility>

namespace parley::actors {

offered_link::~offered_link() {
  if (link_) refuse(protocol::no_such_claim());
}

std::shared_ptr<client_link> offered_link::take() {
  meters_.resumes(true).Increment();
  return std::exchange(link_, nullptr);
}

void offered_link::refuse(const protocol::error& why) {
  meters_.resumes(false).Increment();
  const auto link = std::exchange(link_, nullptr);
  const auto& known = protocol::traits(why.code);
  link->send(std::make_shared<const std::string>(protocol::encode(protocol::error_event{why.code, why.message}, {})));
  link->close(known.close_code, std::string(known.wire));
}

} // namespace parley::actors
