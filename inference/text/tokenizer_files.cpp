#include "inference/text/tokenizer_files.hpp"

#include "inference/formats/file_problem.hpp"
#include "inference/formats/json_file.hpp"

#include <nlohmann/json.hpp>

#include <sstream>
#include <stdexcept>

namespace parley::inference::text {

const char* const known_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error(path.string() + ": " + what);
}

std::string type_of(const json& part) {
  const auto& type = member(part, "type");
  return type.is_string() ? type.get<std::string>() : "none";
}

bool is_true(const json& from, const char* key, bool otherwise = false) {
  const auto& value = member(from, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

bool is_empty(const json& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty());
}

void check_normalizer(const std::filesystem::path& file, const json& root) {
  const auto& normalizer = member(root, "normalizer");
  if (type_of(normalizer) != "NFC")
    refuse(file, "its normalizer is " + type_of(normalizer) + ", and only NFC is implemented");
}

/// Requires a Sequence of Split by Qwen2's pattern and ByteLevel without its own pattern.
void check_pre_tokenizer(const std::filesystem::path& file, const json& root) {
  const auto& outer = member(root, "pre_tokenizer");
  const auto& steps = member(outer, "pretokenizers");
  if (type_of(outer) != "Sequence" || !steps.is_array() || steps.size() != 2 || type_of(steps[0]) != "Split" ||
      type_of(steps[1]) != "ByteLevel")
    refuse(file, "its pre-tokenizer is not Split and ByteLevel in sequence, the only one implemented");
  const auto& pattern = member(member(steps[0], "pattern"), "Regex");
  if (!pattern.is_string() || pattern.get_ref<const std::string&>() != known_pattern)
    refuse(file, "its pre-tokenizer splits by another pattern than Qwen2's, the only one implemented");
  if (member(steps[0], "behavior") != "Isolated" || is_true(steps[0], "invert"))
    refuse(file, "its pre-tokenizer does not isolate what its pattern matches");
  if (is_true(steps[1], "add_prefix_space", true) || is_true(steps[1], "use_regex", true))
    refuse(file, "its ByteLevel pre-tokenizer adds a space or splits once more, which is not implemented");
}

void check_model(const std::filesystem::path& file, const json& root, const json& model) {
  if (const auto& type = member(model, "type"); !type.is_null() && type != "BPE")
    refuse(file, "its model is " + type_of(model) + ", and only BPE is implemented");
  for (const auto* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!is_empty(member(model, key))) refuse(file, std::string("model.") + key + " is set, which is not implemented");
  for (const auto* key : {"byte_fallback", "ignore_merges"})
    if (is_true(model, key)) refuse(file, std::string("model.") + key + " is set, which is not implemented");
  if (const auto& dropout = member(model, "dropout"); dropout.is_number() && dropout.get<double>() != 0)
    refuse(file, "model.dropout is set, which is not implemented");
  for (const auto* key : {"decoder", "post_processor"})
    if (const auto& part = member(root, key); !part.is_null() && type_of(part) != "ByteLevel")
      refuse(file, std::string("its ") + key + " is " + type_of(part) + ", and only ByteLevel is implemented");
}

std::vector<std::pair<std::string, std::int64_t>> read_vocabulary(const std::filesystem::path& file,
                                                                  const json& vocabulary) {
  if (!vocabulary.is_object()) refuse(file, "its vocabulary is not an object");
  std::vector<std::pair<std::string, std::int64_t>> result;
  result.reserve(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    if (!id.is_number_integer()) refuse(file, "the id of \"" + token + "\" is not an integer");
    result.emplace_back(token, id.get<std::int64_t>());
  }
  return result;
}

/// The same as a list of the tokens in the order of their ids.
std::vector<std::pair<std::string, std::int64_t>> read_listed(const std::filesystem::path& file, const json& tokens) {
  std::vector<std::pair<std::string, std::int64_t>> result;
  result.reserve(tokens.size());
  for (const auto& token : tokens) {
    const auto id = static_cast<std::int64_t>(result.size());
    if (!token.is_string()) refuse(file, "token " + std::to_string(id) + " is not a string");
    result.emplace_back(token.get<std::string>(), id);
  }
  return result;
}

std::pair<std::string, std::string> cut_pair(const std::filesystem::path& file, const std::string& text) {
  const auto gap = text.find(' ');
  if (gap == std::string::npos) refuse(file, "no pair in the merge \"" + text + "\"");
  return {text.substr(0, gap), text.substr(gap + 1)};
}

std::vector<std::pair<std::string, std::string>> read_merges(const std::filesystem::path& file, const json& merges) {
  if (!merges.is_array()) refuse(file, "model.merges is not a list");
  std::vector<std::pair<std::string, std::string>> result;
  result.reserve(merges.size());
  for (const auto& merge : merges) {
    if (merge.is_string())
      result.push_back(cut_pair(file, merge.get_ref<const std::string&>()));
    else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
      result.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    else
      refuse(file, "a merge is neither a pair nor a string");
  }
  return result;
}

std::vector<added_token> read_added(const std::filesystem::path& file, const json& tokens) {
  std::vector<added_token> result;
  for (const auto& token : tokens) {
    added_token made{token.at("content").get<std::string>(), token.at("id").get<std::int64_t>(),
                     is_true(token, "special")};
    for (const auto* key : {"lstrip", "rstrip", "single_word"})
      if (is_true(token, key))
        refuse(file, std::string(key) + " of added token " + made.content + " is set, which is not implemented");
    result.push_back(std::move(made));
  }
  return result;
}

} // namespace

tokenizer_files read_tokenizer_json(const std::filesystem::path& file) {
  const auto root = read_json(file);
  try {
    const auto& model = root.at("model");
    check_normalizer(file, root);
    check_pre_tokenizer(file, root);
    check_model(file, root, model);
    tokenizer_files result;
    result.vocabulary_file = file;
    result.vocabulary = read_vocabulary(file, model.at("vocab"));
    result.merges = read_merges(file, model.at("merges"));
    if (const auto& added = member(root, "added_tokens"); !added.is_null()) result.added = read_added(file, added);
    return result;
  } catch (const json::exception& e) {
    refuse(file, e.what());
  }
}

tokenizer_files read_vocabulary_and_merges(const std::filesystem::path& directory) {
  tokenizer_files result;
  result.vocabulary_file = directory / "vocab.json";
  const auto vocabulary = read_json(result.vocabulary_file);
  result.vocabulary = vocabulary.is_array() ? read_listed(result.vocabulary_file, vocabulary)
                                            : read_vocabulary(result.vocabulary_file, vocabulary);
  const auto path = directory / "merges.txt";
  std::istringstream file(read_whole_file(path, largest_text));
  std::string line;
  for (bool first = true; std::getline(file, line); first = false) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty() || (first && line.starts_with("#version"))) continue;
    result.merges.push_back(cut_pair(path, line));
  }
  return result;
}

} // namespace parley::inference::text
