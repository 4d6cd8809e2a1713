#include "actors/worker/engine_thread.hpp"

#include <chrono>
#include <exception>
#include <utility>

namespace parley::actors {

engine_thread::engine_thread(engine_factory make, listener tell, std::size_t max_commands,
                             std::chrono::milliseconds idle_after)
    : make_(std::move(make)), tell_(std::move(tell)), max_commands_(max_commands), idle_after_(idle_after),
      thread_([this] { run(); }) {}

engine_thread::~engine_thread() {
  stop();
  thread_.join();
}

bool engine_thread::post(conversation::command&& order) {
  {
    const std::lock_guard lock(mutex_);
    if (commands_.size() >= max_commands_ && !std::holds_alternative<conversation::close_session>(order)) return false;
    commands_.push_back(std::move(order));
  }
  wake_.notify_one();
  return true;
}

void engine_thread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
}

void engine_thread::run() {
  // The only place that catches what an engine throws: unusable settings or weights, a broken device.
  std::string reason;
  try {
    const auto engine = make_([this](conversation::event&& event) { tell_.event(std::move(event)); });
    tell_.up(engine->info());
    serve(*engine);
    return;
  } catch (const std::exception& problem) {
    reason = problem.what();
  } catch (...) {
    reason = "an exception of unknown type";
  }
  tell_.down(std::move(reason));
}

void engine_thread::serve(inference::engine& engine) {
  std::vector<conversation::command> taken;
  bool busy = false;  // there is work
  bool eager = false; // or something to do while there is none
  std::chrono::duration<double> worked{};
  while (true) {
    if (tell_.load) tell_.load(engine.capacity(), worked.count());
    {
      std::unique_lock lock(mutex_);
      const auto patience = eager ? std::chrono::milliseconds(0) : idle_after_;
      const bool woken = wake_.wait_for(lock, patience, [&] { return stopping_ || busy || !commands_.empty(); });
      if (stopping_) return;
      if (!woken) {
        lock.unlock();
        eager = engine.idle();
        continue;
      }
      eager = false;
      taken.swap(commands_);
    }
    const auto begin = std::chrono::steady_clock::now();
    for (auto& order : taken) engine.handle(std::move(order));
    taken.clear();
    busy = engine.advance();
    worked += std::chrono::steady_clock::now() - begin;
  }
}

} // namespace parley::actors
