#include "inference/check/check_model.hpp"

#include "inference/check/checks.hpp"
#include "inference/check/trial.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <ostream>

namespace parley::inference::check {

namespace {

const char* word_of(severity how) {
  switch (how) {
  case severity::passed: return "ok      ";
  case severity::note: return "note    ";
  case severity::warning: return "warning ";
  case severity::fault: return "FAULT   ";
  }
  return "";
}

std::string counted(int n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

} // namespace

int check_model(const std::filesystem::path& model, const check_options& options, std::ostream& out) {
  const c10::InferenceMode no_autograd;
  const auto& assets = options.settings.worker.assets;
  const folders where{model, assets.empty() ? model : std::filesystem::path(assets)};
  findings found;
  if (check_files(where, options.hash, found)) {
    check_config(where, found);
    check_tensors(where, found);
    check_tokenizer(where, found);
    check_voice(where, found);
    if (options.run) {
      check_numbers(where, found);
      auto settings = options.settings;
      settings.worker.model = model.string();
      settings.worker.max_sessions = 2; // any number, so that the slots are not measured
      if (found.count(severity::fault) == 0) run_trial(settings, found);
    }
  }
  for (const auto& [how, what, advice] : found.all())
    out << word_of(how) << what << (advice.empty() ? "" : " -> ") << advice << '\n';
  const auto faults = found.count(severity::fault);
  out << (faults == 0 ? "it would run: " : "it would not run: ") << counted(faults, "fault") << ", "
      << counted(found.count(severity::warning), "warning") << ", " << counted(found.count(severity::note), "note")
      << '\n';
  return faults == 0 ? 0 : 1;
}

} // namespace parley::inference::check
