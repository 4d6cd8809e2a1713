#include "base/assert.hpp"

#include <boost/assert.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#ifndef BOOST_ENABLE_ASSERT_HANDLER
#error "whatever sees Boost links parley_beast, so that its assertions end here"
#endif

// An assertion of Boost's is one of ours (base/assert.hpp): it ends the connection whose handler broke it.

namespace {

/// Whether the assertion at this place has been reported. The places are those in the headers of Boost: few, and
/// independent of what clients send.
std::atomic<bool>& reported_at(std::string_view file, long line) {
  static std::mutex mutex;
  static std::map<std::pair<std::string_view, long>, std::atomic<bool>> places;
  const std::lock_guard lock(mutex);
  return places[{file, line}];
}

} // namespace

void boost::assertion_failed(const char* condition, const char* /*function*/, const char* file, long line) {
  parley::base::violate({condition, "asserted by Boost", file, static_cast<int>(line)}, reported_at(file, line));
}

void boost::assertion_failed_msg(const char* condition, const char* meaning, const char* /*function*/, const char* file,
                                 long line) {
  parley::base::violate({condition, meaning, file, static_cast<int>(line)}, reported_at(file, line));
}
