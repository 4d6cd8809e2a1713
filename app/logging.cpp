#include "app/logging.hpp"

#include "actors/log_facts.hpp"
#include "actors/logger.hpp"
#include "base/assert.hpp"
#include "base/line_output.hpp"
#include "base/printable.hpp"
#include "protocol/json/writer.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unistd.h>

namespace parley::app {

namespace {

/// Appends `text` as a quoted JSON string.
void append_json(std::string_view text, spdlog::memory_buf_t& to) {
  std::string quoted;
  protocol::json::append_string(text, quoted);
  to.append(quoted.data(), quoted.data() + quoted.size());
}

class json_message final : public spdlog::custom_flag_formatter {
public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    append_json({message.payload.data(), message.payload.size()}, to);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<json_message>(); }
};

/// The session that the logging thread works for, if any. spdlog formats a message on the thread that logs it.
class json_session final : public spdlog::custom_flag_formatter {
public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& to) override {
    const auto session = actors::log_session::current();
    if (session.empty()) return;
    constexpr std::string_view key = R"("session":)";
    to.append(key.data(), key.data() + key.size());
    append_json(session, to);
    to.push_back(',');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<json_session>(); }
};

/// Members of this record alone (actors::log_facts).
class json_facts final : public spdlog::custom_flag_formatter {
public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& to) override {
    const auto* facts = actors::log_facts::current();
    if (!facts) return;
    for (const auto& each : facts->all()) {
      to.push_back(',');
      append_json(each.name, to);
      to.push_back(':');
      const auto words = each.words();
      if (each.text())
        append_json(words, to);
      else
        to.append(words.data(), words.data() + words.size());
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<json_facts>(); }
};

void append_escaped(std::string_view text, spdlog::memory_buf_t& to) {
  const auto safe = base::escaped(text);
  to.append(safe.data(), safe.data() + safe.size());
}

/// Records hold words of clients and of other nodes.
class text_message final : public spdlog::custom_flag_formatter {
public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    append_escaped({message.payload.data(), message.payload.size()}, to);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<text_message>(); }
};

class text_session final : public spdlog::custom_flag_formatter {
public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& to) override {
    const auto session = actors::log_session::current();
    if (session.empty()) return;
    append_escaped(session, to);
    to.push_back(' ');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<text_session>(); }
};

class text_facts final : public spdlog::custom_flag_formatter {
public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& to) override {
    const auto* facts = actors::log_facts::current();
    if (!facts) return;
    std::string_view before = "; ";
    for (const auto& each : facts->all()) {
      append_escaped(std::string(before) + std::string(each.name) + ' ' + each.words(), to);
      before = ", ";
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<text_facts>(); }
};

/// Standard error, which never makes a thread wait.
class stderr_sink final : public spdlog::sinks::base_sink<std::mutex> {
public:
  ~stderr_sink() override { out_.finish(last_words); }

private:
  static constexpr std::chrono::seconds last_words{1};

  void sink_it_(const spdlog::details::log_msg& message) override {
    if (const auto missing = out_.take_missing(); missing > 0) {
      const auto words = std::to_string(missing) + " lines are missing here: nobody read the log";
      write({message.logger_name, spdlog::level::warn, words});
    }
    write(message);
  }
  void flush_() override {}

  void write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    out_.write({line.data(), line.size()});
  }

  base::line_output out_{STDERR_FILENO};
};

/// Called when an invariant of ours is violated, the first time at each place in the code.
void log_violation(const base::assertion_site& site) noexcept {
  try {
    spdlog::error(
        "invariant violated: {} ({}) at {}:{}; the session ends. Further violations at this place are only counted",
        site.meaning, site.condition, site.file, site.line);
  } catch (...) {
    std::fputs(site.meaning, stderr);
  }
}

std::unique_ptr<spdlog::formatter> formatter_for(config::log_format format) {
  const auto time =
      format == config::log_format::json ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local;
  auto formatter = std::make_unique<spdlog::pattern_formatter>(time);
  if (format == config::log_format::json) {
    formatter->add_flag<json_message>('*').add_flag<json_session>('~').add_flag<json_facts>('&');
    formatter->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","part":"%n",%~"message":%*%&})");
  } else {
    formatter->add_flag<text_message>('*').add_flag<text_session>('~').add_flag<text_facts>('&');
    formatter->set_pattern("%Y-%m-%d %H:%M:%S.%e %-7l %n %~%*%&");
  }
  return formatter;
}

} // namespace

void start_logging(const config::settings& settings) {
  const auto sink = std::make_shared<stderr_sink>();
  sink->set_formatter(formatter_for(settings.log.format));
  const auto add = [&](const char* part, const std::string& level) {
    auto log = std::make_shared<spdlog::logger>(part, sink);
    log->set_level(spdlog::level::from_str(level.empty() ? settings.log.level : level));
    spdlog::register_logger(log);
    return log;
  };
  add("net", settings.log.net_level);
  add("actors", settings.log.actors_level);
  add("engine", settings.log.engine_level);
  spdlog::set_default_logger(add("parley", settings.log.level));
  base::set_violation_handler(log_violation);
}

} // namespace parley::app
