#include "inference/engine/voice_desk.hpp"

#include "inference/log.hpp"
#include "inference/speech/features.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace parley::inference {

voice_desk::voice_desk(const speech::token2wav& sound, std::size_t kept) : sound_(sound), cache_(kept) {}

voice_desk::~voice_desk() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const speech::voice> voice_desk::ask(session_id who, const pcm& recording) {
  if (auto known = cache_.find(*recording)) return known;
  for (const auto& o : open_)
    if (std::ranges::equal(speech::part_of_voice(*o->recording), speech::part_of_voice(*recording))) {
      o->askers.push_back(who);
      return nullptr;
    }
  open_.push_back(std::make_shared<order>(order{recording, {who}, nullptr, {}}));
  if (const auto seconds = recording->size() / speech::voice_rate;
      std::ssize(*recording) > speech::longest_voice_samples)
    log_info("engine: a reference voice of " + std::to_string(seconds) + " s is cut to " +
             std::to_string(speech::longest_voice_samples / speech::voice_rate) + " s, which is what fits");
  {
    const std::lock_guard lock(mutex_);
    to_do_.push_back(open_.back());
  }
  wake_.notify_one();
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  return nullptr;
}

void voice_desk::forget(session_id who) {
  for (auto& o : open_) std::erase(o->askers, who);
  const std::lock_guard lock(mutex_);
  std::erase_if(to_do_, [&](const auto& o) { return o->askers.empty() && std::erase(open_, o) > 0; });
}

std::vector<voice_desk::answer> voice_desk::take() {
  std::deque<std::shared_ptr<order>> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
  }
  std::vector<answer> answers;
  for (const auto& o : done) {
    std::erase(open_, o);
    if (o->made) cache_.put(*o->recording, o->made);
    for (auto who : o->askers) answers.push_back({who, o->made, o->problem});
  }
  return answers;
}

bool voice_desk::awaited() const {
  return std::any_of(open_.begin(), open_.end(), [](const auto& o) { return !o->askers.empty(); });
}

void voice_desk::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  finished_.wait_for(lock, most, [this] { return !done_.empty(); });
}

void voice_desk::work() {
  // Whoever talks goes first: a new voice may take its time, a running second may not.
  constexpr int nicer = 5;
  const auto self = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + nicer);
  at::set_num_threads(1);
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !to_do_.empty(); });
    if (stopping_) return;
    const auto next = std::move(to_do_.front());
    to_do_.pop_front();
    lock.unlock();
    prepare(*next);
    lock.lock();
    done_.push_back(next);
    finished_.notify_one();
  }
}

void voice_desk::prepare(order& of) const {
  const c10::InferenceMode guard;
  try {
    of.made = sound_.prepare(sound_.ear().hear(std::span<const float>(*of.recording)));
  } catch (const std::exception& problem) {
    of.problem = problem.what();
  }
}

} // namespace parley::inference
