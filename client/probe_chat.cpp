#include "client/latencies.hpp"
#include "client/printable.hpp"
#include "client/probe.hpp"
#include "client/probe_session.hpp"

#include <chrono>
#include <optional>
#include <ostream>

namespace parley::client {
namespace {

using clock = std::chrono::steady_clock;

class chat_probe final : public probe_session {
public:
  chat_probe(const chat_probe_options& options, std::ostream& out, std::ostream& err)
      : probe_session(out, err), options_(options) {}

private:
  std::string init_frame() const override { return protocol::encode_init({}); }

  // The id is not shown: the same prompt with the same seed prints the same, up to the times.
  void on_created(const protocol::server_message&) override {
    asked_ = clock::now();
    send(protocol::encode_chat({.prompt = options_.prompt,
                                .system = options_.system,
                                .max_new_tokens = options_.max_new_tokens,
                                .greedy = options_.greedy,
                                .seed = options_.seed,
                                .streaming = options_.stream}));
    expect_answer();
  }

  void on_output(const protocol::server_message& event) override {
    if (event.type != protocol::server_event_type::response_done) {
      if (!first_) first_ = clock::now();
      out_ << printable(event.text) << std::flush;
      return expect_answer();
    }
    if (!options_.stream) out_ << printable(event.text);
    out_ << std::endl;
    std::string line = printable_line(event.reason) + ", ";
    if (first_) line += "first text " + milliseconds_text(*first_ - asked_) + ", ";
    tell("response.done", line + "whole answer " + milliseconds_text(clock::now() - asked_));
    if (event.reason == "error" || event.reason == "cancelled") return fail("the answer is not whole");
    close_session("turn_done");
  }

  const chat_probe_options& options_;
  clock::time_point asked_;
  std::optional<clock::time_point> first_;
};

} // namespace

int probe_chat(const chat_probe_options& options, std::ostream& out, std::ostream& err) {
  const auto url = parse_server_url(options.url);
  if (!url) {
    err << "parley probe: --url: " << url.error() << std::endl;
    return 2;
  }
  chat_probe probe(options, out, err);
  return probe.run(*url, "chat");
}

} // namespace parley::client
