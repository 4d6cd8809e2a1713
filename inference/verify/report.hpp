#pragma once

#include "inference/verify/golden_values.hpp"

#include <ATen/core/Tensor.h>

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::inference::verify {

/// The error rule: max|a - b| / max(1, max|b|); infinite when the shapes differ or a value is NaN.
double golden_error(const at::Tensor& mine, const at::Tensor& golden);

/// The same for the values that were recorded; also infinite if `mine` has a different total number of values.
double golden_error(const at::Tensor& mine, const golden_values& golden);

/// The outcome of one case. Its line reports the first failure.
class case_check {
public:
  explicit case_check(double tolerance) : tolerance_(tolerance) {}

  /// Compares values with the case's tolerance.
  void close(std::string_view what, const at::Tensor& mine, const at::Tensor& golden);

  /// Compares values with the given tolerance (docs/model/talker.md 12).
  void close(std::string_view what, const at::Tensor& mine, const at::Tensor& golden, double tolerance);

  void close(std::string_view what, const at::Tensor& mine, const golden_values& golden);
  void close(std::string_view what, const at::Tensor& mine, const golden_values& golden, double tolerance);

  /// For ids, decisions, flags, lengths and text, which must be exact.
  void exact(std::string_view what, bool same);

  template<class A, class B>
  void equal(std::string_view what, const A& mine, const B& golden) {
    exact(what, mine == golden);
  }

  /// Adds something that readers of the report should know.
  void note(std::string what) { notes_.push_back(std::move(what)); }

  double error() const { return error_; }
  double tolerance() const { return tolerance_; }
  const std::string& first_miss() const { return first_miss_; }
  const std::vector<std::string>& notes() const { return notes_; }

private:
  void judge(std::string_view what, double error, double tolerance);

  double tolerance_;
  double error_ = 0;
  std::string first_miss_;
  std::vector<std::string> notes_;
};

/// Prints one line per case, and counts.
class report {
public:
  explicit report(std::ostream& out) : out_(out) {}

  /// `file` is without extension. If `replay` throws, the case fails.
  void run(std::string_view file, std::string_view name, double tolerance,
           const std::function<void(case_check&)>& replay);

  /// Reports a case without a replay, which counts as failed.
  void unknown(std::string_view file, std::string_view name);

  /// Prints the totals; true when nothing failed.
  bool finish();

  int passed() const { return passed_; }
  int failed() const { return failed_; }

private:
  std::ostream& out_;
  int passed_ = 0;
  int failed_ = 0;
};

} // namespace parley::inference::verify
