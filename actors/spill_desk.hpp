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

/// A file of one session's own. It has no name, so that nobody else finds it and it goes when it is let go, whatever
/// happens to the process. Opened when it is first written.
class spill_file {
public:
  spill_file() = default;
  ~spill_file();
  spill_file(const spill_file&) = delete;
  spill_file& operator=(const spill_file&) = delete;

private:
  friend class spill_desk;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// Bytes on their way to disk and back. Its functions are its owner's, one thread at a time.
class parcel {
public:
  /// What was fetched is here: `bytes` may be read.
  bool here() const { return at_.load(std::memory_order_acquire) == place::here; }

  /// The disk failed; they are gone.
  bool lost() const { return at_.load(std::memory_order_acquire) == place::lost; }

  const std::string& bytes() const { return bytes_; }

  /// The memory goes, the disk keeps them. Only while `here`.
  void let_go();

private:
  friend class spill_desk;
  enum class place : std::uint8_t { moving, stored, here, lost };
  std::atomic<place> at_ = place::moving;
  std::string bytes_;
  std::shared_ptr<spill_file> file_;
  std::uint64_t offset_ = 0, size_ = 0;
};

/// Writes and reads on a thread of its own, so that nobody waits for a disk. Thread-safe.
class spill_desk {
public:
  /// Makes `folder`, for its user alone, if it is not there. Throws std::runtime_error when no file can be made in it.
  /// `most_waiting`: bytes on their way (policy: reject).
  explicit spill_desk(std::filesystem::path folder, std::size_t most_waiting = 256u << 20);

  /// Finishes what it is at; the rest is not carried out.
  ~spill_desk();

  spill_desk(const spill_desk&) = delete;
  spill_desk& operator=(const spill_desk&) = delete;

  /// Puts bytes behind what the file holds. Null when too much is on its way.
  std::shared_ptr<parcel> put(std::shared_ptr<spill_file> file, std::string bytes);

  /// Brings back what was put; `there`, if given, is called on the desk's thread when they are here, or lost.
  void fetch(std::shared_ptr<parcel> what, std::function<void()> there);

private:
  struct job {
    std::shared_ptr<parcel> what;
    bool back = false;           ///< it is a fetch
    std::function<void()> there; ///< of a fetch
  };

  void work();
  int make_file() const;
  bool write(parcel& what);
  bool read(parcel& what) const;

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
