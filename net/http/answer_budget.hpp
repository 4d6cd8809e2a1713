#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace parley::net {

/// How many bytes of answers may be held in memory until their readers have read them: of all clients together, and of
/// each. Thread-safe.
class answer_budget {
  struct ledger;

public:
  /// The bytes of one answer, given back when it goes. May outlive the budget.
  class share {
  public:
    share(std::shared_ptr<ledger> of, std::string owner, std::size_t bytes)
        : of_(std::move(of)), owner_(std::move(owner)), bytes_(bytes) {}
    share(share&& other) noexcept = default;
    share& operator=(share&& other) noexcept;
    ~share() { give_back(); }

  private:
    void give_back();

    std::shared_ptr<ledger> of_; ///< null = moved on
    std::string owner_;
    std::size_t bytes_;
  };

  answer_budget(std::size_t of_all, std::size_t of_each);

  /// Whether an answer could have its share: asked before the work of making it.
  bool has_room(const std::string& owner) const;

  /// Nothing if it is too much. `owner`: whose answer it is.
  std::optional<share> take(const std::string& owner, std::size_t bytes);

private:
  struct ledger {
    std::mutex mutex;
    std::size_t all = 0;
    std::map<std::string, std::size_t> each; ///< of those who have any
  };

  const std::size_t of_all_;
  const std::size_t of_each_;
  std::shared_ptr<ledger> ledger_;
};

} // namespace parley::net
