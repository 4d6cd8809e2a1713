#include "actors/session/spill_writer.hpp"

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <stdexcept>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace parley::actors {

namespace {

/// Calls `call(done)`, which transfers some bytes and returns how many, until all are transferred. Returns false if it
/// fails or transfers none.
template<class Call>
bool all_of(std::size_t size, Call call) {
  for (std::size_t done = 0; done < size;) {
    const auto count = call(done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

} // namespace

spill_file::~spill_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void spilled_block::let_go() {
  std::string().swap(bytes_);
  at_.store(state::stored, std::memory_order_release);
}

spill_writer::spill_writer(std::filesystem::path folder, std::size_t most_waiting)
    : folder_(std::move(folder)), most_waiting_(most_waiting) {
  std::error_code problem;
  if (std::filesystem::create_directories(folder_, problem))
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, problem);
  const int trial = make_file();
  if (trial < 0)
    throw std::runtime_error("no file can be made in " + folder_.string() + ": " +
                             std::generic_category().message(errno));
  ::close(trial);
  thread_ = std::thread([this] { work(); });
}

spill_writer::~spill_writer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::shared_ptr<spilled_block> spill_writer::put(std::shared_ptr<spill_file> file, std::string bytes) {
  auto fresh = std::make_shared<spilled_block>();
  fresh->file_ = std::move(file);
  fresh->size_ = bytes.size();
  fresh->bytes_ = std::move(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (waiting_ + fresh->size_ > most_waiting_) return nullptr;
    waiting_ += fresh->size_;
    to_do_.push_back({fresh, false, nullptr});
  }
  wake_.notify_one();
  return fresh;
}

void spill_writer::fetch(std::shared_ptr<spilled_block> what, std::function<void()> there) {
  {
    const std::lock_guard lock(mutex_);
    to_do_.push_back({std::move(what), true, std::move(there)});
  }
  wake_.notify_one();
}

void spill_writer::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !to_do_.empty(); });
    if (stopping_) return;
    auto next = std::move(to_do_.front());
    to_do_.pop_front();
    lock.unlock();
    auto& what = *next.what;
    using enum spilled_block::state;
    const auto before = what.at_.load(std::memory_order_acquire);
    try {
      if (next.back) {
        if (before != lost) what.at_.store(before == here || read(what) ? here : lost, std::memory_order_release);
        if (next.there) next.there();
      } else {
        what.at_.store(write(what) ? stored : lost, std::memory_order_release);
      }
    } catch (const std::exception&) { // out of memory: that session can no longer be moved, but others can
      what.at_.store(lost, std::memory_order_release);
    }
    lock.lock();
    if (!next.back) waiting_ -= what.size_;
    // Not under the lock, which others wait for: releasing the last reference may close a file.
    lock.unlock();
    next = {};
    lock.lock();
  }
}

int spill_writer::make_file() const {
  auto name = (folder_ / "parley-XXXXXX").string();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor >= 0) ::unlink(name.c_str());
  return descriptor;
}

bool spill_writer::write(spilled_block& what) {
  auto& file = *what.file_;
  if (file.descriptor_ < 0) file.descriptor_ = make_file();
  what.offset_ = file.size_;
  const bool good = file.descriptor_ >= 0 && all_of(what.size_, [&](std::size_t done) {
                      return ::pwrite(file.descriptor_, what.bytes_.data() + done, what.size_ - done,
                                      static_cast<off_t>(what.offset_ + done));
                    });
  if (good) file.size_ += what.size_;
  std::string().swap(what.bytes_);
  return good;
}

bool spill_writer::read(spilled_block& what) const {
  what.bytes_.resize(what.size_);
  return all_of(what.size_, [&](std::size_t done) {
    return ::pread(what.file_->descriptor_, what.bytes_.data() + done, what.size_ - done,
                   static_cast<off_t>(what.offset_ + done));
  });
}

} // namespace parley::actors
