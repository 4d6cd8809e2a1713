#include "net/trace/span_exporter.hpp"

#include "base/log_throttle.hpp"
#include "config/load.hpp"
#include "net/beast.hpp"
#include "net/logger.hpp"
#include "net/stream.hpp"

#include <boost/asio/ssl/context.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace parley::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint32_t most_head_bytes = 8192;
constexpr milliseconds look_again{50}; ///< whether it is to end, while a request is under way
constexpr milliseconds to_notice{200}; ///< that the time of `finish` is over

enum class verdict : std::uint8_t { taken, later, refused };

std::shared_ptr<asio::ssl::context> client_tls() {
  using asio::ssl::context;
  auto tls = std::make_shared<context>(context::tls_client);
  tls->set_options(context::default_workarounds | context::no_tlsv1 | context::no_tlsv1_1);
  error_code ec;
  tls->set_default_verify_paths(ec);
  if (ec) throw config::settings_error("tracing.endpoint: " + ec.message());
  tls->set_verify_mode(asio::ssl::verify_peer);
  return tls;
}

verdict verdict_on(unsigned status) {
  if (status >= 200 && status < 300) return verdict::taken;
  return status == 429 || (status >= 502 && status <= 504) ? verdict::later : verdict::refused;
}

} // namespace

/// Held by the thread as well: the system may take longer to look up a name than anybody waits.
class span_exporter::impl : public std::enable_shared_from_this<impl> {
public:
  impl(export_options options, std::shared_ptr<span_counts> counts)
      : with_(std::move(options)), counts_(std::move(counts)), headers_(with_.headers),
        tls_(with_.to.tls ? client_tls() : nullptr) {}

  void start() {
    thread_ = std::thread([self = shared_from_this()] {
      try {
        self->work();
      } catch (const std::exception& problem) {
        self->fail(problem);
      }
    });
  }

  void take(protocol::trace::span&& what) {
    {
      const std::lock_guard lock(mutex_);
      if (!stop_at_ && waiting_.size() < with_.most_waiting) {
        waiting_.push_back(std::move(what));
        if (waiting_.size() != 1 && waiting_.size() != with_.batch) return; // nobody is to be woken
      } else {
        ++counts_->dropped;
        return;
      }
    }
    changed_.notify_all();
  }

  void replace_headers(header_list headers) {
    const std::lock_guard lock(mutex_);
    headers_ = std::move(headers);
  }

  void finish(milliseconds within) {
    std::unique_lock lock(mutex_);
    if (!thread_.joinable()) return;
    stop_at_ = steady_clock::now() + within;
    changed_.notify_all();
    changed_.wait_until(lock, *stop_at_ + to_notice, [this] { return done_; });
    changed_.wait(lock, [this] { return done_ || resolving_; }); // all else looks at the time
    if (done_) {
      lock.unlock();
      return thread_.join();
    }
    abandoned_ = true;
    thread_.detach();
  }

private:
  using spans = std::vector<protocol::trace::span>;

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_at_ || !waiting_.empty(); });
      changed_.wait_for(lock, with_.gather, [this] { return stop_at_ || waiting_.size() >= with_.batch; });
      if (waiting_.empty()) break;
      spans some;
      const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(with_.batch, waiting_.size()));
      std::move(waiting_.begin(), end, std::back_inserter(some));
      waiting_.erase(waiting_.begin(), end);
      send(some, lock);
      if (abandoned_) return;
    }
    done_ = true;
    changed_.notify_all();
  }

  void fail(const std::exception& problem) {
    log()->error("no more spans are sent: {}", problem.what());
    const std::lock_guard lock(mutex_);
    if (!stop_at_) stop_at_ = steady_clock::now();
    counts_->dropped += waiting_.size();
    waiting_.clear();
    done_ = true;
    changed_.notify_all();
  }

  /// Nothing that goes wrong here is anybody else's.
  void send(const spans& some, std::unique_lock<std::mutex>& lock) {
    std::string why;
    auto how = verdict::later;
    auto pause = with_.retry_after;
    for (int attempt = 0; how == verdict::later && attempt <= with_.retries; ++attempt) {
      if (attempt > 0) {
        changed_.wait_for(lock, pause, [this] { return stop_at_.has_value(); });
        pause *= 2;
      }
      if (attempt > 0 && stop_at_) break;
      const auto deadline =
          std::min(steady_clock::now() + with_.timeout, stop_at_.value_or(steady_clock::time_point::max()));
      const auto headers = headers_;
      lock.unlock();
      try {
        how = post(encode(with_.from, some), headers, deadline, why);
      } catch (const std::exception& problem) {
        how = verdict::refused;
        why = problem.what();
      }
      lock.lock();
      if (abandoned_) return;
    }
    (how == verdict::taken ? counts_->sent : counts_->failed) += some.size();
    if (how == verdict::taken) return;
    if (const auto more = complaints_.pass(steady_clock::now()))
      log()->warn("{} spans did not reach {}: {} ({} more such lines in the last minute)", some.size(),
                  with_.to.authority, why, *more);
  }

  /// Runs what `begin` begins until it is done or the time is over.
  template<class Begin>
  error_code run(asio::io_context& io, steady_clock::time_point deadline, Begin begin) {
    auto result = std::make_shared<std::optional<error_code>>(); // what is given up may still come
    begin([result](error_code ec, auto&&...) { *result = ec; });
    io.restart();
    while (!*result) {
      auto now = steady_clock::now();
      {
        const std::lock_guard lock(mutex_);
        if (stop_at_) deadline = std::min(deadline, *stop_at_);
      }
      if (now >= deadline) return beast::error::timeout;
      io.run_one_for(std::min<steady_clock::duration>(look_again, deadline - now));
    }
    return **result;
  }

  /// Once nobody waits for the thread, the program ends, and nothing of it may be touched any more.
  void resolving(bool now) {
    std::unique_lock lock(mutex_);
    resolving_ = now;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !abandoned_; });
  }

  verdict post(const std::string& body, const header_list& headers, steady_clock::time_point deadline,
               std::string& why) {
    asio::io_context io{1};
    const auto failed = [&](error_code ec) {
      why = ec.message();
      return verdict::later;
    };
    error_code ec;
    resolving(true);
    const auto found = tcp::resolver(io).resolve(with_.to.host, with_.to.port, ec);
    resolving(false);
    if (ec) return failed(ec);
    beast::tcp_stream socket(io);
    ec = run(io, deadline, [&](auto done) { socket.async_connect(found, std::move(done)); });
    if (ec) return failed(ec);
    stream wire(socket.release_socket());
    if (tls_) {
      ec = run(io, deadline, [&](auto done) { wire.async_secure_as_client(*tls_, with_.to.host, std::move(done)); });
      if (ec) return failed(ec);
    }
    http::request<http::string_body> request(http::verb::post, with_.to.target, 11);
    request.set(http::field::host, with_.to.authority);
    request.set(http::field::user_agent, "parley/" + with_.from.version);
    request.set(http::field::content_type, "application/json");
    request.set(http::field::connection, "close");
    for (const auto& [name, value] : headers) request.set(name, value);
    request.body() = body;
    request.prepare_payload();
    ec = run(io, deadline, [&](auto done) { http::async_write(wire, request, std::move(done)); });
    if (ec) return failed(ec);
    beast::flat_buffer buffer(2 * most_head_bytes);
    http::response_parser<http::empty_body> answer;
    answer.header_limit(most_head_bytes);
    answer.body_limit(std::numeric_limits<std::uint64_t>::max()); // it is not read
    ec = run(io, deadline, [&](auto done) { http::async_read_header(wire, buffer, answer, std::move(done)); });
    if (ec) return failed(ec);
    const auto status = answer.get().result_int();
    why = "it answered " + std::to_string(status);
    return verdict_on(status);
  }

  const export_options with_;
  const std::shared_ptr<span_counts> counts_;
  base::log_throttle complaints_{std::chrono::minutes(1)};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<protocol::trace::span> waiting_;
  header_list headers_;
  std::optional<steady_clock::time_point> stop_at_;
  bool done_ = false;
  bool resolving_ = false;
  bool abandoned_ = false; ///< nobody waits for the thread any more, and the program may be at its end
  const std::shared_ptr<asio::ssl::context> tls_; ///< null = plain text
  std::thread thread_;
};

span_exporter::span_exporter(export_options options, std::shared_ptr<span_counts> counts)
    : impl_(std::make_shared<impl>(std::move(options), std::move(counts))) {
  impl_->start();
}

span_exporter::~span_exporter() {
  finish(milliseconds(0));
}

void span_exporter::take(protocol::trace::span&& what) {
  impl_->take(std::move(what));
}

void span_exporter::replace_headers(header_list headers) {
  impl_->replace_headers(std::move(headers));
}

void span_exporter::finish(milliseconds within) {
  impl_->finish(within);
}

} // namespace parley::net
