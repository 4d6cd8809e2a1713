#include "inference/engine/picture_desk.hpp"

#include <exception>
#include <utility>

namespace parley::inference {

picture_desk::picture_desk(vision::slicing how, int threads, std::size_t bound) : how_(how), bound_(bound) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

picture_desk::~picture_desk() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& t : threads_) t.join();
}

bool picture_desk::take(const std::shared_ptr<picture_order>& fresh) {
  {
    const std::lock_guard lock(mutex_);
    if (to_do_.size() >= bound_) return false;
    to_do_.push_back(fresh);
  }
  wake_.notify_one();
  return true;
}

void picture_desk::wait(std::uint64_t counted, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  one_done_.wait_for(lock, most, [&] { return finished_ != counted; });
}

void picture_desk::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !to_do_.empty(); });
    if (stopping_) return;
    const auto next = std::exchange(to_do_.front(), {}).lock();
    to_do_.pop_front();
    if (!next) continue;
    lock.unlock();
    carry_out(*next);
    next->done = true;
    lock.lock();
    ++finished_;
    one_done_.notify_one();
  }
}

void picture_desk::carry_out(picture_order& order) const {
  auto pieces = std::size_t{0};
  for (std::size_t i = 0; i < order.files.size(); ++i) {
    order.troublemaker = i;
    try {
      auto sliced = vision::slice_file(*order.files[i], order.max_slice_nums, how_);
      if (!sliced) {
        order.problem = std::move(sliced.error());
        return;
      }
      pieces += sliced->pieces.size();
      order.pictures.push_back(*std::move(sliced));
    } catch (const std::exception& broken) { // memory
      order.kind = failure::inference;
      order.problem = broken.what();
      return;
    }
    if (pieces > order.most_pieces) {
      order.kind = failure::context_full;
      order.problem = "the pictures do not fit into the context";
      return;
    }
  }
}

} // namespace parley::inference
