#include "net/call/media_transport.hpp"

// Of a program that was built without WebRTC (-DPARLEY_WEBRTC=OFF).
namespace parley::net {

std::unique_ptr<media_library> make_media_library(const media_options&) {
  return nullptr;
}

} // namespace parley::net
