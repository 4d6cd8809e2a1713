#include "protocol/codec/client_side.hpp"
#include "protocol/codec/server_glance.hpp"
#include "tests/fuzz/fuzz.hpp"

// Server frames, as the probes and the load generator read them.
void parley::test::fuzz(std::string_view bytes) {
  static_cast<void>(protocol::glance(bytes));
  static_cast<void>(protocol::read_server_message(bytes));
}
