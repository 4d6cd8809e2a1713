#include "client/codec/frames.hpp"
#include "client/codec/server_glance.hpp"
#include "tests/fuzz/fuzz.hpp"

// Server frames, as the probes and the load generator read them.
void parley::test::fuzz(std::string_view bytes) {
  static_cast<void>(client::glance(bytes));
  static_cast<void>(client::read_server_message(bytes));
}
