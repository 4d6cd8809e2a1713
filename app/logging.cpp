#include "app/logging.hpp"

#include "protocol/json_writer.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <string_view>

namespace parley::app {

namespace {

/// The message as a JSON string, quotes and all.
class json_message final : public spdlog::custom_flag_formatter {
public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    std::string text;
    protocol::json::append_string(std::string_view(message.payload.data(), message.payload.size()), text);
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<json_message>(); }
};

} // namespace

void start_logging(const config::settings& settings) {
  auto log = spdlog::stderr_logger_mt("parley");
  if (settings.log.format == config::log_format::json) {
    auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
    formatter->add_flag<json_message>('*');
    formatter->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%*})");
    log->set_formatter(std::move(formatter));
  } else {
    log->set_pattern("%Y-%m-%d %H:%M:%S.%e %-7l %v");
  }
  log->set_level(spdlog::level::from_str(settings.log.level));
  spdlog::set_default_logger(std::move(log));
}

} // namespace parley::app
