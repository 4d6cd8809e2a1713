#include "inference/engine/image_preprocessor.hpp"

#include <algorithm>
#include <utility>

namespace parley::inference {

image_preprocessor::image_preprocessor(vision::slicing how, int threads, std::size_t bound) : how_(how), bound_(bound) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

image_preprocessor::~image_preprocessor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& t : threads_) t.join();
}

bool image_preprocessor::take(const std::shared_ptr<image_job>& fresh) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_ >= bound_) return false;
    auto of = std::ranges::find(lines_, fresh->owner, &line::owner);
    if (of == lines_.end()) of = lines_.insert(lines_.end(), line{fresh->owner, {}});
    of->orders.push_back(fresh);
    ++waiting_;
  }
  wake_.notify_one();
  return true;
}

void image_preprocessor::wait(std::uint64_t counted, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  one_done_.wait_for(lock, most, [&] { return finished_ != counted; });
}

std::list<image_preprocessor::line>::iterator image_preprocessor::free_line() {
  return std::ranges::find_if(lines_, [](const line& of) { return !of.busy; });
}

void image_preprocessor::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || free_line() != lines_.end(); });
    if (stopping_) return;
    const auto turn = free_line();
    lines_.splice(lines_.end(), lines_, turn); // other sessions are next
    if (turn->orders.empty()) {                // happens only if there was no memory for its order
      lines_.erase(turn);
      continue;
    }
    turn->busy = true;
    auto order = turn->orders.front().lock();
    lock.unlock();
    const auto over = !order || next_file(order);
    if (over && order) order->done = true;
    const auto was_wanted = order != nullptr;
    order.reset();
    lock.lock();
    turn->busy = false;
    if (over) {
      turn->orders.pop_front();
      --waiting_;
      if (turn->orders.empty()) lines_.erase(turn);
    }
    if (over && was_wanted) {
      ++finished_;
      one_done_.notify_one();
    }
    wake_.notify_one(); // this session's next file may start
  }
}

/// Processes the next file of the order. Returns true when the order is done, or has failed.
bool image_preprocessor::next_file(const std::shared_ptr<image_job>& of) const noexcept {
  auto& order = *of;
  try {
    const auto wanted = [&of] { return of.use_count() > 1; };
    if (order.troublemaker == order.files.size()) return true;
    auto sliced = vision::slice_file(*order.files[order.troublemaker], order.max_slice_nums, how_, wanted);
    if (!sliced) {
      order.problem = std::move(sliced.error());
      return true;
    }
    order.pieces += sliced->pieces.size();
    if (order.pieces > order.most_pieces) {
      order.kind = failure::context_full;
      order.problem = "the pictures do not fit into the context";
      return true;
    }
    order.pictures.push_back(*std::move(sliced));
    return ++order.troublemaker == order.files.size() || !wanted();
  } catch (...) { // out of memory
    order.kind = failure::inference;
    order.problem = "no memory";
    return true;
  }
}

} // namespace parley::inference
