#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace parley::base {

/// How many bytes may be held in memory for clients: for all of them together, and for each. Thread-safe.
class byte_budget {
  struct ledger;

public:
  /// The bytes of one answer or message, given back when it goes. May outlive the budget.
  class share {
  public:
    share(std::shared_ptr<ledger> of, std::string owner) : of_(std::move(of)), owner_(std::move(owner)) {}
    share(share&& other) noexcept;
    share& operator=(share&& other) noexcept;
    ~share() { shrink_to(0); }

    /// Grows to at least this many bytes. Returns false, with nothing changed, if the budget does not allow it.
    bool grow_to(std::size_t bytes);

    /// Keeps at most this many bytes and gives back the rest.
    void shrink_to(std::size_t bytes);

    std::size_t bytes() const { return bytes_; }

    /// A share of nothing, of the same owner.
    share open_another() const { return {of_, owner_}; }

  private:
    std::shared_ptr<ledger> of_;
    std::string owner_;
    std::size_t bytes_ = 0;
  };

  byte_budget(std::size_t of_all, std::size_t of_each);

  /// Whether there is anything left for that client: asked before the work of making an answer.
  bool has_room(const std::string& owner) const;

  /// A share of nothing yet.
  share open(std::string owner) const { return {ledger_, std::move(owner)}; }

  /// Nothing if it is too much. `owner`: the client whose answer it is.
  std::optional<share> take(std::string owner, std::size_t bytes) const;

private:
  struct ledger {
    ledger(std::size_t most, std::size_t most_of_each) : of_all(most), of_each(most_of_each) {}

    const std::size_t of_all;
    const std::size_t of_each;
    std::mutex mutex;
    std::size_t all = 0;
    std::map<std::string, std::size_t> each; ///< of those who have any
  };

  std::shared_ptr<ledger> ledger_;
};

} // namespace parley::base
