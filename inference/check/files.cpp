#include "inference/check/checks.hpp"
#include "inference/check/known_files.hpp"
#include "inference/formats/file_problem.hpp"
#include "inference/formats/json_file.hpp"
#include "inference/formats/mapped_file.hpp"

#include <nlohmann/json.hpp>

#include <openssl/evp.h>
#include <set>

namespace parley::inference::check {

namespace {

constexpr auto fetch_again = "fetch the folder again: huggingface-cli download openbmb/MiniCPM-o-4_5";
constexpr auto index_name = "model.safetensors.index.json";

/// A file, whether the server needs it, and what is lost without it.
struct expected_file {
  const char* name;
  severity how;
  const char* lost;
};

constexpr expected_file expected[] = {
    {"config.json", severity::fault, "the model's sizes are in it"},
    {"tokenizer_config.json", severity::fault, "the control tokens are in it"},
    {"preprocessor_config.json", severity::warning, "how pictures are cut is in it; config.json's numbers are taken"},
    {"generation_config.json", severity::note, "no number of it is used"}};

constexpr const char* networks[] = {"flow.pt", "flow.yaml", "hift.pt", "speech_tokenizer_v2_25hz.onnx",
                                    "campplus.onnx"};

void add(findings& out, severity how, std::string what, std::string advice) {
  if (how == severity::fault)
    out.fault(std::move(what), std::move(advice));
  else if (how == severity::warning)
    out.warn(std::move(what), std::move(advice));
  else
    out.note(std::move(what), std::move(advice));
}

/// The weight files, as named by the index.
std::set<std::string> shards_of(const std::filesystem::path& model, findings& out) {
  std::set<std::string> shards;
  if (const auto problem = file_problem(model / index_name)) {
    if (const auto single = file_problem(model / "model.safetensors"))
      out.fault(*single == is_missing
                    ? "neither model.safetensors nor " + std::string(index_name) + " is there: no weights"
                    : "model.safetensors " + *single,
                fetch_again);
    else
      shards.insert("model.safetensors");
    if (*problem != is_missing) out.fault(std::string(index_name) + " " + *problem, fetch_again);
    return shards;
  }
  try {
    const auto index = read_json(model / index_name);
    for (const auto& [name, file] : index.at("weight_map").items()) shards.insert(file.get<std::string>());
  } catch (const std::exception& e) {
    out.fault(std::string(index_name) + " can't be read: " + e.what(), fetch_again);
  }
  return shards;
}

std::string sha256(const std::filesystem::path& file) {
  const mapped_file mapped(file);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_Digest(mapped.bytes().data(), mapped.bytes().size(), digest, &length, EVP_sha256(), nullptr);
  std::string text;
  constexpr char digits[] = "0123456789abcdef";
  for (unsigned i = 0; i < length; ++i) (text += digits[digest[i] >> 4]) += digits[digest[i] & 15];
  return text;
}

/// Counts files that are identical to those of the pinned revision.
struct same_files {
  int by_size = 0, by_hash = 0;
};

void compare_with_pinned(const known_file& known, const folders& where, bool hash, same_files& same, findings& out) {
  const std::string name(known.name), revision(pinned_revision.substr(0, 7));
  const auto file = (name.starts_with("assets/") ? where.assets : where.model) / name;
  if (file_problem(file)) return;
  const auto size = file_size(file);
  if (known.bytes != 0 && size != known.bytes) {
    out.note(name + " has " + std::to_string(size) + " bytes, in revision " + revision + " it has " +
                 std::to_string(known.bytes),
             "another revision, or a damaged copy");
    return;
  }
  same.by_size += known.bytes != 0;
  if (!hash) return;
  if (sha256(file) == known.sha256)
    ++same.by_hash;
  else
    out.warn(name + " has the size but not the SHA-256 of revision " + revision,
             "if the folder is of that revision, the copy is damaged: fetch the file again");
}

/// Pipes and devices, which nothing may open: a pipe waits for a writer, and a device may have no end.
bool holds_pipes(const std::filesystem::path& folder, findings& out) {
  using std::filesystem::file_type;
  std::error_code none;
  bool found = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, none)) {
    const auto type = entry.status(none).type();
    if (type != file_type::fifo && type != file_type::character && type != file_type::block &&
        type != file_type::socket)
      continue;
    out.fault(entry.path().filename().string() + " " + is_not_regular, fetch_again);
    found = true;
  }
  return found;
}

} // namespace

bool check_files(const folders& where, bool hash, findings& out) {
  const auto about_folder = folder_problem(where.model);
  const auto is_there = [&](const char* name) { return exists(symlink_status(where.model / name)); };
  const bool has_weights = is_there(index_name) || is_there("model.safetensors");
  if (about_folder && !has_weights) {
    out.fault(where.model.string() + " " + *about_folder, "");
    return false;
  }
  if (about_folder) out.warn(where.model.string() + " " + *about_folder, "check again when it has ended");
  const auto pipes = holds_pipes(where.model, out);
  if ((where.assets != where.model && holds_pipes(where.assets, out)) || pipes) return false;
  const auto faults = out.count(severity::fault);
  for (const auto& file : expected)
    if (const auto problem = file_problem(where.model / file.name))
      add(out, *problem == is_missing ? file.how : severity::fault,
          std::string(file.name) + " " + *problem + " (" + file.lost + ")", fetch_again);
  if (const auto problem = file_problem(where.model / "tokenizer.json")) {
    const bool older = !file_problem(where.model / "vocab.json") && !file_problem(where.model / "merges.txt");
    add(out, *problem == is_missing && older ? severity::note : severity::fault,
        "tokenizer.json " + *problem + (older ? " (vocab.json and merges.txt are there)" : ""), fetch_again);
  }
  for (const auto& shard : shards_of(where.model, out))
    if (const auto problem = file_problem(where.model / shard)) out.fault(shard + " " + *problem, fetch_again);
  for (const auto* name : networks)
    if (const auto problem = file_problem(where.assets / "assets/token2wav" / name))
      out.warn("assets/token2wav/" + std::string(name) + " " + *problem + ": no voice, answers are text alone",
               "fetch it, or name a folder that has it: --assets here, worker.assets for the server");
  if (!is_made(config_of(where.model))) {
    same_files same;
    for (const auto& known : known_files) compare_with_pinned(known, where, hash, same, out);
    if (same.by_size > 0) out.pass(std::to_string(same.by_size) + " files have the sizes of the pinned revision");
    if (same.by_hash > 0) out.pass(std::to_string(same.by_hash) + " files have its SHA-256");
  }
  if (out.count(severity::fault) == faults) out.pass("the files that it needs are there");
  return true;
}

nlohmann::json config_of(const std::filesystem::path& model) {
  try {
    auto config = read_json(model / "config.json");
    return config.is_object() ? config : nlohmann::json();
  } catch (const std::exception&) {
    return {};
  }
}

bool is_made(const nlohmann::json& config) {
  return config.is_object() && config.contains("made_by");
}

} // namespace parley::inference::check
