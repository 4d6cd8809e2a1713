#include "net/server.hpp"

#include "config/load.hpp"
#include "net/call/calls.hpp"
#include "net/descriptors.hpp"
#include "net/host_name.hpp"
#include "net/io_thread.hpp"
#include "net/listener.hpp"
#include "net/logger.hpp"
#include "net/routes/routes.hpp"
#include "net/text.hpp"
#include "net/tls.hpp"
#include "net/trace/span_exporter.hpp"

#include <boost/asio/ip/udp.hpp>

#include <algorithm>
#include <openssl/rand.h>
#include <system_error>
#include <thread>
#include <utility>

namespace parley::net {
namespace {

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

api_keys keys_of(const std::filesystem::path& file) {
  return file.empty() ? api_keys() : api_keys::load(file);
}

ephemeral_keys secrets_of(const std::filesystem::path& file) {
  return file.empty() ? ephemeral_keys() : ephemeral_keys::load(file);
}

std::vector<std::string> addresses_in(std::string_view list) {
  std::vector<std::string> out;
  while (const auto word = take_word(list)) {
    error_code wrong;
    out.push_back(asio::ip::make_address(*word, wrong).to_string());
    if (wrong) throw config::settings_error("webrtc.public_addresses: " + std::string(*word) + " is no address");
  }
  return out;
}

/// Why nobody can listen there. Calls do so while there are any.
error_code refused_udp(asio::io_context& io, const std::string& address, std::uint16_t port) {
  using asio::ip::udp;
  const udp::endpoint where(asio::ip::make_address(address), port);
  udp::socket socket(io);
  error_code ec;
  socket.open(where.protocol(), ec);
  if (!ec) socket.bind(where, ec);
  return ec;
}

/// After everything else has ended.
constexpr std::chrono::milliseconds last_spans_within{2000};

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&bits), sizeof bits) != 1)
    throw std::runtime_error("no random numbers");
  return bits;
}

std::shared_ptr<span_exporter> exporter_of(const tracing_options& options, std::shared_ptr<span_counts> counts) {
  if (options.endpoint.empty()) return nullptr;
  export_options with;
  with.to = read_collector(options.endpoint);
  with.headers = read_headers(options.headers_file);
  const auto host = read_host(with.to.host);
  const bool is_here = host && host->is_loopback();
  if (!with.headers.empty() && !with.to.tls && !is_here)
    log()->warn("the headers of tracing.headers_file go to {} in plain text", with.to.authority);
  with.from.version = PARLEY_VERSION;
  with.from.attributes = {{"service.name", "parley"}, {"service.version", PARLEY_VERSION}};
  if (!options.node.empty()) with.from.attributes.push_back({"service.instance.id", options.node});
  return std::make_shared<span_exporter>(std::move(with), std::move(counts));
}

} // namespace

connection_limits limits_from(const config::settings& settings) {
  connection_limits limits;
  limits.duplex_message_bytes = settings.limits.duplex_message_bytes;
  limits.chat_message_bytes = settings.limits.chat_message_bytes;
  limits.outbox_bytes = settings.limits.outbox_bytes;
  limits.resume_bytes = settings.limits.resume_bytes;
  limits.header_bytes = settings.limits.header_bytes;
  limits.body_bytes = settings.limits.body_bytes;
  limits.received_bytes = settings.limits.received_bytes;
  limits.received_bytes_per_client = settings.limits.received_bytes_per_client;
  limits.answer_bytes = settings.limits.answer_bytes;
  limits.answer_bytes_per_client = settings.limits.answer_bytes_per_client;
  limits.waiting_bytes = settings.limits.waiting_bytes;
  limits.waiting_bytes_per_client = settings.limits.waiting_bytes_per_client;
  limits.credit_bytes = settings.limits.read_ahead_bytes;
  limits.credit_frames = static_cast<std::size_t>(settings.limits.read_ahead_frames);
  limits.connections = static_cast<std::size_t>(settings.limits.connections);
  limits.slot_wait_s = settings.openai.slot_wait_seconds;
  limits.handshake = milliseconds_of(settings.limits.handshake_seconds);
  limits.keep_alive = milliseconds_of(settings.limits.keep_alive_seconds);
  limits.close = milliseconds_of(settings.limits.close_seconds);
  limits.ping = milliseconds_of(settings.limits.ping_seconds);
  return limits;
}

server_options options_from(const config::settings& settings) {
  server_options options;
  options.host = settings.server.host;
  options.port = settings.server.port;
  options.names = settings.server.names;
  options.trusted_proxies = settings.server.trusted_proxies;
  options.threads = settings.server.io_threads;
  options.tls = {settings.tls.mode, settings.tls.cert, settings.tls.key};
  options.keys_file = settings.auth.keys_file;
  if (!settings.journal.dir.empty()) options.usage_file = std::filesystem::path(settings.journal.dir) / "key-usage";
  options.allowed_origins = settings.auth.allowed_origins;
  options.admission = {static_cast<std::size_t>(settings.limits.sessions_per_address),
                       static_cast<std::size_t>(settings.limits.sessions_per_key),
                       static_cast<std::size_t>(settings.limits.starts_per_address),
                       static_cast<std::size_t>(settings.limits.starts_per_key)};
  options.limits = limits_from(settings);
  options.openai = settings.openai.realtime;
  options.transcribes = settings.openai.transcribe == config::transcription::chat;
  options.ephemeral_secret_file = settings.auth.ephemeral_secret_file;
  options.tracing = {settings.tracing.endpoint, settings.tracing.sample, settings.tracing.headers_file,
                     settings.nodes.name};
  options.webrtc = settings.webrtc.enabled;
  options.webrtc_addresses = settings.webrtc.public_addresses;
  options.webrtc_port = static_cast<std::uint16_t>(settings.webrtc.port);
  return options;
}

class server::impl {
public:
  impl(server_options options, actors::gateway_api& core)
      : host_(std::move(options.host)), names_(options.names), tls_(options.tls), keys_file_(options.keys_file),
        shared_{options.limits,
                options.openai,
                core,
                {keys_of(options.keys_file),
                 std::move(options.allowed_origins),
                 {host_, options.names},
                 options.admission,
                 secrets_of(options.ephemeral_secret_file),
                 std::make_shared<key_usage>(options.usage_file)},
                trusted_proxies(options.trusted_proxies),
                base::current(make_tls(options.tls, host_, options.names)),
                {},
                {},
                net::connections(connections_within(options.limits.connections, descriptor_limit())),
                {options.limits.received_bytes, options.limits.received_bytes_per_client},
                {options.limits.answer_bytes, options.limits.answer_bytes_per_client},
                {options.limits.waiting_bytes, options.limits.waiting_bytes_per_client}},
        headers_file_(options.tracing.headers_file), spans_(exporter_of(options.tracing, shared_.counted.spans())),
        io_(std::max(options.threads, 1)) {
    if (spans_)
      shared_.traces = std::make_shared<const protocol::trace::tracer>(options.tracing.sample, random_bits, spans_);
    shared_.routes = make_routes(
        {core, std::move(options.voice), std::move(options.model), shared_.counted,
         [this] { return shared_.all.count(); },
         std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count(),
         options.openai == config::openai_door::off ? nullptr : &shared_.entrance.ephemeral(), options.transcribes,
         [this] { return shared_.calls.get(); }, &shared_.entrance.usage()});
    try {
      listener_ = std::make_shared<listener>(io_, host_, options.port, shared_);
    } catch (const boost::system::system_error& error) {
      throw std::system_error(error.code(), "cannot listen on " + host_ + ":" + std::to_string(options.port));
    }
    if (listener_->is_reachable() && !shared_.entrance.asks_for_keys())
      log()->warn("whoever reaches {} may talk to this server: auth.keys_file is not set", host_);
    if (listener_->is_reachable() && shared_.entrance.asks_for_keys() && !shared_.tls.get())
      log()->warn("API keys come to {} in plain text: tls.mode is off", host_);
    if (options.webrtc && options.openai != config::openai_door::off) {
      const auto udp = options.webrtc_port != 0 ? options.webrtc_port : port();
      auto media = make_media_library({listener_->address(), udp, addresses_in(options.webrtc_addresses)});
      if (const auto why = media ? refused_udp(io_, listener_->address(), udp) : error_code())
        log()->error("calls over WebRTC are off: UDP port {}: {}", udp, why.message());
      else if (media)
        shared_.calls = std::make_unique<calls>(io_, shared_, std::move(media));
    }
    listener_->run();
    for (int i = 0; i < std::max(options.threads, 1); ++i)
      threads_.emplace_back([this] { run_guarded(io_, "a connection"); });
  }

  ~impl() {
    stop(std::chrono::milliseconds(0));
    if (spans_) spans_->finish(last_spans_within);
  }

  std::function<void()> read_again() {
    auto keys = std::make_shared<const api_keys>(keys_of(keys_file_));
    auto tls = make_tls(tls_, host_, names_);
    auto headers = spans_ ? read_headers(headers_file_) : header_list();
    return [this, keys = std::move(keys), tls = std::move(tls), headers = std::move(headers)] {
      if (spans_) spans_->replace_headers(headers);
      if (tls) {
        shared_.tls.set(tls);
        log()->info("the certificate was read again");
      }
      if (!keys->asked()) return;
      const auto before = shared_.entrance.keys();
      shared_.entrance.replace_keys(keys);
      const auto gone = before->missing_in(*keys);
      log()->info("keys: {} ({} new, {} gone)", keys->size(), keys->missing_in(*before).size(), gone.size());
      for (const auto& name : gone) shared_.core.close_sessions_of(name, key_removed);
    };
  }

  void stop(std::chrono::milliseconds grace) {
    if (threads_.empty()) return;
    listener_->stop();
    shared_.all.close_entrance();
    if (!shared_.all.wait_empty(std::chrono::steady_clock::now() + grace)) {
      log()->info("cutting {} connections", shared_.all.count());
      shared_.all.cut_all();
      shared_.all.wait_empty(std::chrono::steady_clock::now() + std::chrono::seconds(5));
    }
    shared_.body_readers.join();
    if (shared_.calls) shared_.calls->stop();
    work_.reset();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    shared_.calls.reset(); // before `io_`, whose timers its calls have
  }

  std::uint16_t port() const { return listener_->port(); }
  std::size_t connections_now() const { return shared_.all.count(); }

  std::string url() const {
    auto host = host_;
    boost::system::error_code is_name;
    const auto address = asio::ip::make_address(host, is_name);
    if (!is_name && address.is_unspecified()) host = address.is_v6() ? "::1" : "127.0.0.1"; // one that opens
    const bool v6 = host.find(':') != std::string::npos;
    return (shared_.tls.get() ? "https://" : "http://") + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port());
  }

private:
  const std::string host_;
  const std::string names_;
  const tls_options tls_;
  const std::filesystem::path keys_file_;
  service shared_;
  const std::filesystem::path headers_file_;
  const std::shared_ptr<span_exporter> spans_; ///< null = nothing is traced
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::shared_ptr<listener> listener_;
  std::vector<std::thread> threads_;
};

server::server(server_options options, actors::gateway_api& core)
    : impl_(std::make_unique<impl>(std::move(options), core)) {}
server::~server() = default;

std::uint16_t server::port() const {
  return impl_->port();
}
std::string server::url() const {
  return impl_->url();
}
std::size_t server::connections() const {
  return impl_->connections_now();
}
std::function<void()> server::read_again() {
  return impl_->read_again();
}
void server::stop(std::chrono::milliseconds grace) {
  impl_->stop(grace);
}

} // namespace parley::net
