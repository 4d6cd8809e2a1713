#pragma once

#include <string>
#include <utility>
#include <vector>

namespace parley::inference::check {

enum class severity {
  passed,  ///< checked and correct
  note,    ///< worth knowing
  warning, ///< it runs, but something is lost
  fault    ///< it would not run, or its answers would be wrong
};

struct finding {
  severity how;
  std::string what;   ///< one sentence that names the file or the key
  std::string advice; ///< what to do about it; empty = nothing
};

/// The findings of the checks, in order.
class findings {
public:
  void pass(std::string what) { add(severity::passed, std::move(what), {}); }
  void note(std::string what, std::string advice = {}) { add(severity::note, std::move(what), std::move(advice)); }
  void warn(std::string what, std::string advice) { add(severity::warning, std::move(what), std::move(advice)); }
  void fault(std::string what, std::string advice) { add(severity::fault, std::move(what), std::move(advice)); }

  const std::vector<finding>& all() const { return all_; }
  int count(severity how) const {
    int n = 0;
    for (const auto& one : all_) n += one.how == how;
    return n;
  }

private:
  void add(severity how, std::string what, std::string advice) {
    all_.push_back({how, std::move(what), std::move(advice)});
  }

  std::vector<finding> all_;
};

} // namespace parley::inference::check
