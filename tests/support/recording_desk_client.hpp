#pragma once

#include "actors/recording_desk.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <future>
#include <stdexcept>
#include <string>

namespace parley::tests {

/// Asks a desk and waits for its answers.
class recording_desk_client {
public:
  explicit recording_desk_client(actors::recording_desk& desk) : desk_(desk) {}

  nlohmann::json list(const actors::requester& who) {
    std::promise<std::string> answer;
    desk_.list(who, 1000, [&](std::string json) { answer.set_value(std::move(json)); });
    return nlohmann::json::parse(answer.get_future().get());
  }

  /// The facts of a recording once it is over.
  nlohmann::json wait_for_listed(const std::string& id) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < until)
      for (const auto& each : list({"", true}))
        if (each["session_id"] == id) return each;
    throw std::runtime_error("no recording " + id);
  }

  struct file {
    actors::desk_answer answer;
    std::string content;
  };
  file fetch(const std::string& id, const std::string& name, const actors::requester& who = {"", true}) {
    std::promise<file> answer;
    desk_.fetch(id, name, who, [&](actors::desk_answer what, std::string content) {
      answer.set_value({what, std::move(content)});
    });
    return answer.get_future().get();
  }

  actors::desk_answer remove(const std::string& id, const actors::requester& who) {
    std::promise<actors::desk_answer> answer;
    desk_.remove(id, who, [&](actors::desk_answer what) { answer.set_value(what); });
    return answer.get_future().get();
  }

private:
  actors::recording_desk& desk_;
};

} // namespace parley::tests
