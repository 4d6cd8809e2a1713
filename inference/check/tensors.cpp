#include "inference/check/checks.hpp"
#include "inference/formats/awq.hpp"
#include "inference/formats/file_problem.hpp"
#include "inference/formats/json_file.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/formats/model_kind.hpp"
#include "inference/formats/safetensors.hpp"
#include "inference/init/presets.hpp"
#include "inference/init/tensor_plan.hpp"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <sstream>

namespace parley::inference::check {

namespace {

using nlohmann::json;

constexpr auto index_name = "model.safetensors.index.json";
constexpr auto again = "fetch the file again; `--hash` tells which ones differ from the pinned revision";

/// All tensors of a folder, by name.
struct stored_tensors {
  std::vector<safetensors_file> files;
  std::map<std::string, std::size_t> file_of;

  std::optional<at::Tensor> find(const std::string& name) const {
    auto found = file_of.find(name);
    if (found == file_of.end()) return std::nullopt;
    return files[found->second].tensor(name);
  }
};

void open_file(const std::filesystem::path& model, const std::string& name, stored_tensors& to, findings& out) {
  try {
    to.files.push_back(safetensors_file::open(model / name));
    for (const auto& tensor : to.files.back().names()) to.file_of.emplace(tensor, to.files.size() - 1);
  } catch (const std::exception& e) {
    out.fault(e.what(), again);
  }
}

stored_tensors open_all(const std::filesystem::path& model, findings& out) {
  stored_tensors result;
  if (!exists(symlink_status(model / index_name))) {
    open_file(model, "model.safetensors", result, out);
    return result;
  }
  try {
    const auto index = read_json(model / index_name);
    std::map<std::string, int> files;
    for (const auto& [name, file] : index.at("weight_map").items()) ++files[file.get<std::string>()];
    for (const auto& [file, count] : files)
      if (!file_problem(model / file)) open_file(model, file, result, out);
    for (const auto& [name, file] : index.at("weight_map").items())
      for (const auto& opened : result.files)
        if (opened.path() == model / file.get<std::string>() && !opened.has(name))
          out.fault("tensor " + name + " is not in " + file.get<std::string>() + ", although the index says so", again);
  } catch (const std::exception& e) {
    out.fault(e.what(), again);
  }
  return result;
}

std::string shape_text(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

std::string part_of(const std::string& name) {
  return name.substr(0, name.find('.'));
}

/// Compares the stored tensors with what the configuration requires, and counts by part.
class comparison {
public:
  comparison(const stored_tensors& stored, const json& config, findings& out)
      : stored_(stored), format_(weight_format_of(config)), out_(out) {}

  void run(const std::vector<init::planned_tensor>& planned) {
    for (const auto& tensor : planned) {
      if (format_.awq && is_awq_name(tensor.name) && !stored_.find(tensor.name))
        look_for_quantized(tensor);
      else
        look_for(tensor);
    }
    for (const auto& [prefix, wanted] : wanted_)
      if (found_[prefix] == wanted)
        out_.pass(prefix + ": " + std::to_string(wanted) + " tensors");
      else
        out_.fault(prefix + ": " + std::to_string(found_[prefix]) + " of " + std::to_string(wanted) +
                       " tensors are as planned",
                   again);
    const auto extra = stored_.file_of.size() - known_;
    if (extra > 0) out_.note(std::to_string(extra) + " tensors that no part of the model reads");
  }

private:
  void look_for(const init::planned_tensor& tensor) {
    const auto found = stored_.find(tensor.name);
    if (found) ++known_;
    const bool fits = found && found->sizes() == at::IntArrayRef(tensor.shape);
    if (!fits && tensor.name == "tts.model.embed_tokens.weight") return; // this tensor is never read
    ++wanted_[part_of(tensor.name)];
    if (!found) {
      complain("there is no tensor " + tensor.name);
    } else if (!fits) {
      complain("tensor " + tensor.name + " has shape " + shape_text(found->sizes()) + ", config.json asks for " +
               shape_text(tensor.shape));
    } else if (!found->is_floating_point()) {
      complain("tensor " + tensor.name + " holds " + toString(found->scalar_type()) + " numbers, not floats");
    } else {
      ++found_[part_of(tensor.name)];
    }
  }

  void look_for_quantized(const init::planned_tensor& tensor) {
    ++wanted_[part_of(tensor.name)];
    const auto stem = tensor.name.substr(0, tensor.name.size() - std::string_view("weight").size());
    std::vector<at::Tensor> parts;
    for (const auto* name : {"qweight", "qzeros", "scales"})
      if (auto found = stored_.find(stem + name)) parts.push_back(*found);
    known_ += parts.size();
    if (parts.size() != 3) {
      complain("there is no tensor " + tensor.name + ", nor all of " + stem + "qweight, qzeros and scales");
      return;
    }
    try {
      check_awq({parts[0], parts[1], parts[2]});
      if (parts[0].size(0) != tensor.shape[1] || parts[2].size(1) != tensor.shape[0] ||
          parts[0].size(0) / parts[2].size(0) != format_.group_size)
        throw std::runtime_error("config.json asks for another shape or group");
      ++found_[part_of(tensor.name)];
    } catch (const std::exception& e) {
      complain("tensor " + stem + "qweight: " + e.what());
    }
  }

  /// Reports a problem, but only the first few of each kind.
  void complain(const std::string& what) {
    constexpr int enough = 8;
    if (++complaints_ <= enough) out_.fault(what, again);
  }

  const stored_tensors& stored_;
  weight_format format_;
  findings& out_;
  std::map<std::string, int> wanted_, found_;
  std::size_t known_ = 0;
  int complaints_ = 0;
};

} // namespace

void check_tensors(const folders& where, findings& out) {
  const auto config = config_of(where.model);
  const auto stored = open_all(where.model, out);
  if (stored.files.empty() || config.is_null()) return;
  try {
    model_config::open(where.model); // sizes that no model has were reported already, and nothing is planned with them
  } catch (const std::exception&) {
    return;
  }
  try {
    // Absent keys count as published, except for one default of the reference.
    auto filled = init::find_preset("minicpm-o-4.5").config;
    filled["drop_vision_last_layer"] = true;
    filled.merge_patch(config);
    auto planned = init::plan_tensors(filled);
    std::erase_if(planned, [&](const auto& tensor) {
      const auto part = part_of(tensor.name);
      return (part == "tts" && !config.value("init_tts", true)) ||
             ((part == "vpm" || part == "resampler") && !config.value("init_vision", true)) ||
             ((part == "apm" || part == "audio_projection_layer") && !config.value("init_audio", true));
    });
    comparison(stored, config, out).run(planned);
  } catch (const std::exception& e) {
    out.fault("config.json: " + std::string(e.what()), "fetch config.json again");
  }
}

void check_numbers(const folders& where, findings& out) {
  const auto stored = open_all(where.model, out);
  int looked_at = 0;
  for (const auto& [name, file] : stored.file_of) {
    const auto tensor = stored.files[file].tensor(name);
    ++looked_at;
    try {
      if (tensor.is_floating_point() && !tensor.isfinite().all().item<bool>())
        out.fault("tensor " + name + " holds values that are not numbers", again);
    } catch (const c10::Error&) { // a type that LibTorch stores and does not work with
      out.fault("tensor " + name + " holds " + toString(tensor.scalar_type()) + " numbers, which can't be used", again);
    }
  }
  out.pass(std::to_string(looked_at) + " tensors were read");
}

} // namespace parley::inference::check
