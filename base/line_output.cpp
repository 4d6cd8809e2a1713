#include "base/line_output.hpp"

#include <climits>

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace parley::base {

namespace {

constexpr std::size_t room_for_a_word = 1024;

bool ready(int descriptor, std::chrono::milliseconds patience) {
  pollfd one{descriptor, POLLOUT, 0};
  return ::poll(&one, 1, static_cast<int>(patience.count())) > 0;
}

} // namespace

bool line_output::write(std::string_view line) {
  write_some({});
  if (!has_room(line.size())) {
    ++missing_;
    return false;
  }
  waiting_ += line;
  write_some({});
  return true;
}

std::size_t line_output::take_missing() {
  if (missing_ == 0) return 0;
  write_some({});
  return has_room(room_for_a_word) ? std::exchange(missing_, 0) : 0;
}

void line_output::finish(std::chrono::milliseconds longest) {
  write_some(longest);
}

/// A pipe that is ready takes PIPE_BUF bytes at once; with more, a blocking descriptor would wait.
void line_output::write_some(std::chrono::milliseconds patience) {
  std::size_t done = 0;
  while (done < waiting_.size() && ready(descriptor_, patience)) {
    const auto count =
        ::write(descriptor_, waiting_.data() + done, std::min<std::size_t>(waiting_.size() - done, PIPE_BUF));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) done = waiting_.size(); // nobody can read it any more
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  waiting_.erase(0, done);
}

} // namespace parley::base
