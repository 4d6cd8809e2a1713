#pragma once

#include "actors/recording/recordings_api.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

namespace parley::tests {

/// Queries recordings and waits for the answers.
class recordings_client {
public:
  explicit recordings_client(actors::recordings_api& desk) : desk_(desk) {}

  nlohmann::json list(const actors::principal& who) {
    std::promise<std::string> answer;
    desk_.list(who, 1000, [&](std::string json) { answer.set_value(std::move(json)); });
    return nlohmann::json::parse(answer.get_future().get());
  }

  /// The facts of a recording that has ended.
  nlohmann::json wait_for_listed(const std::string& id) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < until)
      for (const auto& each : list({"", true}))
        if (each["session_id"] == id) return each;
    throw std::runtime_error("no recording " + id);
  }

  struct file {
    actors::recording_answer answer;
    std::string content;
  };
  file fetch(const std::string& id, const std::string& name, const actors::principal& who = {"", true}) {
    std::promise<file> answer;
    desk_.fetch(id, name, who, [&](actors::recording_answer what, std::shared_ptr<const base::open_file> open) {
      std::string content(open ? open->size() : 0, '\0');
      if (open) content.resize(open->read(0, content));
      answer.set_value({what, std::move(content)});
    });
    return answer.get_future().get();
  }

  actors::recording_answer remove(const std::string& id, const actors::principal& who) {
    std::promise<actors::recording_answer> answer;
    desk_.remove(id, who, [&](actors::recording_answer what) { answer.set_value(what); });
    return answer.get_future().get();
  }

private:
  actors::recordings_api& desk_;
};

} // namespace parley::tests
