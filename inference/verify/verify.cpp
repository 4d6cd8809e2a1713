#include "inference/verify/verify.hpp"

#include "inference/engine/device.hpp"
#include "inference/kernels/varlen_attention.hpp"
#include "inference/verify/e2e_set.hpp"
#include "inference/verify/families.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <ostream>
#include <stdexcept>

namespace parley::inference::verify {

namespace {

golden_kind kind_of(const std::filesystem::path& goldens) {
  if (std::filesystem::exists(goldens / "E1.json")) return golden_kind::end_to_end;
  if (std::filesystem::exists(goldens / "tokenizer.json")) return golden_kind::thinker;
  if (std::filesystem::exists(goldens / "manifest.json")) return golden_kind::talker;
  throw std::runtime_error(goldens.string() + ": no golden files (E1.json, tokenizer.json or manifest.json)");
}

/// Such a file describes how the recordings were made and contains no case.
bool is_description(const std::string& stem) {
  return stem == "meta";
}

} // namespace

int run_verify(const std::filesystem::path& model, const std::filesystem::path& goldens, std::ostream& out,
               const verify_options& how) {
  at::InferenceMode no_autograd;
  at::set_num_threads(1); // as when the recordings were made
  auto kind = kind_of(goldens);
  const auto device = find_device(how.device, small_hidden_size);
  set_up_accelerators(float32_products::exact);
  varlen_attention::prefer_loop(how.plain_attention);
  golden_set files(model, goldens, device, find_dtype(how.dtype, device, small_hidden_size));
  const bool as_recorded = device.is_cpu() && files.dtype() == at::kFloat;
  if (kind == golden_kind::talker && !as_recorded)
    throw std::runtime_error(
        "the talker's goldens are replayed on the CPU in float32 only; those of whole conversations "
        "(E1.json) take it to any device");
  report results(out);
  if (kind == golden_kind::end_to_end) {
    replay_e2e(files, results);
    return results.finish() ? 0 : 1;
  }
  for (const auto& stem : files.stems("")) {
    if (is_description(stem)) continue;
    auto all = families();
    auto owner = std::find_if(all.begin(), all.end(),
                              [&](const family& f) { return f.kind == kind && stem.starts_with(f.prefix); });
    if (owner == all.end()) {
      results.unknown(stem, "*");
      continue;
    }
    try {
      owner->replay(files, stem, results);
    } catch (const std::exception& e) {
      results.run(stem, "*", 0, [&](case_check&) { throw; });
    }
    out.flush();
  }
  return results.finish() ? 0 : 1;
}

} // namespace parley::inference::verify
