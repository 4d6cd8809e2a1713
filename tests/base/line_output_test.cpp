#include "base/line_output.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <unistd.h>

using namespace std::chrono_literals;
using parley::base::line_output;

namespace {

/// A pipe of 4096 bytes.
class small_pipe {
public:
  small_pipe() {
    REQUIRE(::pipe2(ends_.data(), O_CLOEXEC) == 0);
    ::fcntl(ends_[1], F_SETPIPE_SZ, 4096);
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~small_pipe() {
    close_reader();
    ::close(ends_[1]);
  }

  int writer() const { return ends_[1]; }

  std::string read() const {
    std::string all;
    std::array<char, 4096> some;
    for (ssize_t count = 0; (count = ::read(ends_[0], some.data(), some.size())) > 0;)
      all.append(some.data(), static_cast<std::size_t>(count));
    return all;
  }

  void close_reader() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }

private:
  std::array<int, 2> ends_{};
};

std::string line(int number) {
  auto text = std::to_string(number);
  return text + std::string(99 - text.size(), '.') + "\n";
}

std::string lines(int from, int to) {
  std::string all;
  for (auto i = from; i < to; ++i) all += line(i);
  return all;
}

} // namespace

TEST_CASE("lines are written at once while somebody reads") {
  const small_pipe pipe;
  line_output out(pipe.writer());
  for (auto i = 0; i < 1000; ++i) {
    REQUIRE(out.write(line(i)));
    REQUIRE(pipe.read() == line(i));
  }
}

TEST_CASE("while nobody reads, lines are kept up to a limit and counted beyond") {
  const small_pipe pipe;
  line_output out(pipe.writer(), 10'000);
  auto kept = 0;
  while (out.write(line(kept))) REQUIRE(++kept < 1000);
  REQUIRE_FALSE(out.write(line(-1)));
  REQUIRE(out.take_missing() == 0); // no room for a word on it yet
  auto seen = pipe.read();
  REQUIRE(out.take_missing() == 2);
  REQUIRE(out.take_missing() == 0);
  for (seen += pipe.read(); seen.size() < static_cast<std::size_t>(kept) * 100; seen += pipe.read()) out.finish(0ms);
  REQUIRE(seen == lines(0, kept));
  REQUIRE(out.write(line(7)));
  REQUIRE(pipe.read() == line(7));
}

TEST_CASE("a line longer than the pipe does not wait either") {
  const small_pipe pipe;
  line_output out(pipe.writer());
  const auto longest = std::string(50'000, 'x') + "\n";
  REQUIRE(out.write(longest));
  std::string seen;
  while (seen.size() < longest.size()) {
    seen += pipe.read();
    out.finish(0ms);
  }
  REQUIRE(seen == longest);
}

TEST_CASE("without a reader nothing is kept and nothing waits") {
  std::signal(SIGPIPE, SIG_IGN);
  small_pipe pipe;
  pipe.close_reader();
  line_output out(pipe.writer(), 1000);
  for (auto i = 0; i < 100; ++i) REQUIRE(out.write(line(i)));
  out.finish(10s);
}
