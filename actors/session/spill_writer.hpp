#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace parley::actors {

/// A file owned by one session. It has no name, so nobody else can find it, and it disappears when it is released,
/// whatever happens to the process. Opened on the first write.
class spill_file {
public:
  spill_file() = default;
  ~spill_file();
  spill_file(const spill_file&) = delete;
  spill_file& operator=(const spill_file&) = delete;

private:
  friend class spill_writer;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// Bytes on their way to disk and back. Used by its owner, one thread at a time.
class spilled_block {
public:
  /// Whether the bytes have been fetched, so that `bytes` may be read.
  bool here() const { return at_.load(std::memory_order_acquire) == state::here; }

  /// Whether the disk failed, so that the bytes are gone.
  bool lost() const { return at_.load(std::memory_order_acquire) == state::lost; }

  const std::string& bytes() const { return bytes_; }

  /// Frees the memory; the disk keeps the bytes. Only while `here`.
  void let_go();

private:
  friend class spill_writer;
  enum class state : std::uint8_t { moving, stored, here, lost };
  std::atomic<state> at_ = state::moving;
  std::string bytes_;
  std::shared_ptr<spill_file> file_;
  std::uint64_t offset_ = 0, size_ = 0;
};

/// Writes and reads on its own thread, so that nobody waits for a disk. Thread-safe.
class spill_writer {
public:
  /// Creates `folder` for its user only, if it does not exist. Throws std::runtime_error if no file can be created in
  /// it. `most_waiting`: limit of bytes in progress; more are rejected.
  explicit spill_writer(std::filesystem::path folder, std::size_t most_waiting = 256u << 20);

  /// Finishes the current operation and drops the rest.
  ~spill_writer();

  spill_writer(const spill_writer&) = delete;
  spill_writer& operator=(const spill_writer&) = delete;

  /// Appends bytes to the file. Null if too much is in progress.
  std::shared_ptr<spilled_block> put(std::shared_ptr<spill_file> file, std::string bytes);

  /// Reads back what was written; `there`, if given, is called on the writer's thread when the bytes are here, or lost.
  void fetch(std::shared_ptr<spilled_block> what, std::function<void()> there);

private:
  struct job {
    std::shared_ptr<spilled_block> what;
    bool back = false;           ///< true for a fetch
    std::function<void()> there; ///< for a fetch
  };

  void work();
  int make_file() const;
  bool write(spilled_block& what);
  bool read(spilled_block& what) const;

  const std::filesystem::path folder_;
  const std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<job> to_do_;
  std::size_t waiting_ = 0; ///< bytes of puts in `to_do_`
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace parley::actors
