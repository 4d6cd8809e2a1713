#include "inference/engine/voice_preparer.hpp"

#include "inference/engine/helper_threads.hpp"
#include "inference/engine/isolate.hpp"
#include "inference/logger.hpp"
#include "inference/voice/features.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <new>
#include <utility>

namespace parley::inference {

voice_preparer::voice_preparer(const speech::token2wav& sound, std::size_t kept) : sound_(sound), cache_(kept) {}

voice_preparer::~voice_preparer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const speech::voice> voice_preparer::ask(session_id who, const pcm& recording) {
  if (auto known = cache_.find(*recording)) return known;
  for (const auto& o : open_)
    if (std::ranges::equal(speech::part_of_voice(*o->recording), speech::part_of_voice(*recording))) {
      o->askers.push_back(who);
      return nullptr;
    }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  if (const auto seconds = recording->size() / speech::voice_rate;
      std::ssize(*recording) > speech::longest_voice_samples)
    log_info("engine: a reference voice of " + std::to_string(seconds) + " s is cut to " +
             std::to_string(speech::longest_voice_samples / speech::voice_rate) + " s, which is what fits");
  std::list<std::shared_ptr<order>> fresh{std::make_shared<order>(order{recording, {who}, nullptr, {}})};
  open_.push_back(fresh.front());
  {
    const std::lock_guard lock(mutex_);
    to_do_.splice(to_do_.end(), fresh);
  }
  wake_.notify_one();
  return nullptr;
}

void voice_preparer::forget(session_id who) {
  for (auto& o : open_) std::erase(o->askers, who);
  const std::lock_guard lock(mutex_);
  std::erase_if(to_do_, [&](const auto& o) { return o->askers.empty() && std::erase(open_, o) > 0; });
}

std::vector<voice_preparer::answer> voice_preparer::take() {
  std::list<std::shared_ptr<order>> done;
  std::vector<answer> answers;
  {
    const std::lock_guard lock(mutex_);
    auto askers = std::size_t{0};
    for (const auto& o : done_) askers += o->askers.size();
    answers.reserve(askers); // from here on no answer can be lost
    done.swap(done_);
  }
  for (const auto& o : done) {
    std::erase(open_, o);
    try {
      if (o->made) cache_.put(*o->recording, o->made);
    } catch (const std::bad_alloc&) { // not cached then
    }
    for (auto who : o->askers) {
      answers.push_back({who, o->made, {}});
      answers.back().problem.swap(o->problem); // only the first answer carries the message
    }
  }
  return answers;
}

bool voice_preparer::awaited() const {
  return std::any_of(open_.begin(), open_.end(), [](const auto& o) { return !o->askers.empty(); });
}

void voice_preparer::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  finished_.wait_for(lock, most, [this] { return !done_.empty(); });
}

void voice_preparer::work() {
  lower_thread_priority();
  at::set_num_threads(1);
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !to_do_.empty(); });
    if (stopping_) return;
    std::list<std::shared_ptr<order>> next;
    next.splice(next.end(), to_do_, to_do_.begin());
    lock.unlock();
    prepare(*next.front());
    lock.lock();
    done_.splice(done_.end(), next);
    finished_.notify_one();
  }
}

void voice_preparer::prepare(order& of) const noexcept {
  try {
    const c10::InferenceMode guard;
    of.made = sound_.prepare(sound_.ear().hear(std::span<const float>(*of.recording)));
  } catch (...) {
    try {
      of.problem = words_of_exception().text;
    } catch (const std::bad_alloc&) { // no memory for the message; an answer without a voice is a failure
    }
  }
}

} // namespace parley::inference
