#include "inference/verify/report.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <iomanip>
#include <limits>
#include <ostream>

namespace parley::inference::verify {

double golden_error(const at::Tensor& mine, const at::Tensor& golden) {
  constexpr auto infinite = std::numeric_limits<double>::infinity();
  if (!mine.defined() || !golden.defined() || mine.sizes() != golden.sizes()) return infinite;
  if (golden.numel() == 0) return 0;
  auto a = mine.to(at::kCPU, at::kDouble);
  auto b = golden.to(at::kCPU, at::kDouble);
  auto error = (a - b).abs().max().item<double>() / std::max(1.0, b.abs().max().item<double>());
  return std::isfinite(error) ? error : infinite;
}

double golden_error(const at::Tensor& mine, const golden_values& golden) {
  if (golden.every == 1) return golden_error(mine, golden.values);
  if (!mine.defined() || mine.numel() != golden.count) return std::numeric_limits<double>::infinity();
  return golden_error(mine.flatten().slice(0, 0, std::nullopt, golden.every), golden.values);
}

void case_check::close(std::string_view what, const at::Tensor& mine, const at::Tensor& golden) {
  close(what, mine, golden, tolerance_);
}

void case_check::close(std::string_view what, const at::Tensor& mine, const at::Tensor& golden, double tolerance) {
  judge(what, golden_error(mine, golden), tolerance);
}

void case_check::close(std::string_view what, const at::Tensor& mine, const golden_values& golden) {
  close(what, mine, golden, tolerance_);
}

void case_check::close(std::string_view what, const at::Tensor& mine, const golden_values& golden, double tolerance) {
  judge(what, golden_error(mine, golden), tolerance);
}

void case_check::judge(std::string_view what, double error, double tolerance) {
  error_ = std::max(error_, error);
  if (error > tolerance && first_miss_.empty()) first_miss_ = what;
}

void case_check::exact(std::string_view what, bool same) {
  if (!same && first_miss_.empty()) first_miss_ = what;
}

void report::run(std::string_view file, std::string_view name, double tolerance,
                 const std::function<void(case_check&)>& replay) {
  case_check check(tolerance);
  std::string miss;
  try {
    replay(check);
    miss = check.first_miss();
  } catch (const std::exception& e) {
    miss = std::string(e.what()).substr(0, std::string_view(e.what()).find('\n'));
    if (miss.empty()) miss = "exception";
  }
  bool ok = miss.empty();
  ++(ok ? passed_ : failed_);
  out_ << (ok ? "ok " : "FAIL ") << file << '/' << name << std::setprecision(3) << " max_abs_err=" << check.error()
       << " tol=" << tolerance;
  if (!ok) out_ << "  (" << miss << ')';
  for (const auto& note : check.notes()) out_ << "  [" << note << ']';
  out_ << '\n';
}

void report::unknown(std::string_view file, std::string_view name) {
  ++failed_;
  out_ << "FAIL " << file << '/' << name << " max_abs_err=inf tol=0  (no replay for this case)\n";
}

bool report::finish() {
  out_ << passed_ << " passed, " << failed_ << " failed\n";
  return failed_ == 0;
}

} // namespace parley::inference::verify
