#include "inference/text/tokenizer.hpp"

#include "base/utf8.hpp"
#include "inference/formats/json_file.hpp"
#include "inference/logger.hpp"
#include "inference/text/added_tokens.hpp"
#include "inference/text/bpe.hpp"
#include "inference/text/byte_alphabet.hpp"
#include "inference/text/missing_merges.hpp"
#include "inference/text/pretokenizer.hpp"
#include "inference/text/tokenizer_files.hpp"
#include "inference/text/unicode.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace parley::inference {

namespace {

/// Allows lookup by string_view without creating a string.
struct string_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};

using id_by_text = std::unordered_map<std::string, token_id, string_hash, std::equal_to<>>;

constexpr token_id max_token_id = 1 << 24; // keeps a broken file from requesting huge tables

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error(path.string() + ": " + what);
}

} // namespace

struct tokenizer::tables {
  id_by_text ids;
  std::vector<std::string> bytes; // indexed by id
  std::vector<bool> special;      // indexed by id
  std::vector<std::pair<std::string, token_id>> added;
  text::added_token_trie added_trie;
  text::bpe merges{{}};
  std::vector<token_id> bad_ids;
  token_id bos = 0;
  token_id eos = 0;
  token_id pad = 0;
  token_id unk = 0;
  std::filesystem::path vocabulary_file;
  std::size_t merge_count = 0;
  std::size_t derived_merges = 0;

  void add(const std::filesystem::path& path, const std::string& token, token_id id) {
    if (id < 0 || id > max_token_id) refuse(path, "token id " + std::to_string(id) + " is out of range");
    auto at = static_cast<std::size_t>(id);
    if (at >= bytes.size()) {
      bytes.resize(at + 1);
      special.resize(at + 1, false);
    }
    ids.insert_or_assign(token, id);
    bytes[at] = text::bytes_of(token).value_or(token);
  }

  text::bpe::id required(const std::filesystem::path& path, std::string_view token) const {
    auto found = ids.find(token);
    if (found == ids.end())
      refuse(path, "token \"" + std::string(token) + "\" is not in " + vocabulary_file.filename().string());
    return static_cast<text::bpe::id>(found->second);
  }

  void take(const text::tokenizer_files& files);
  void take_settings(const std::filesystem::path& path, const nlohmann::json& settings);
  void encode_plain(std::string_view piece, std::size_t most, std::vector<token_id>& out) const;
};

namespace {

[[noreturn]] void refuse_other_name(const std::filesystem::path& path, const std::string& id, const std::string& here,
                                    const std::string& there) {
  refuse(path, "token " + id + " is \"" + here + "\" here and \"" + there + "\" in tokenizer.json");
}

/// Adds the tokens of `tokenizer_config.json` to those already listed by another file; the two must agree.
void read_added_tokens(const std::filesystem::path& path, const nlohmann::json& settings, text::tokenizer_files& to) {
  std::unordered_map<token_id, std::string> known;
  for (const auto& token : to.added) known.emplace(token.id, token.content);
  const auto listed = settings.find("added_tokens_decoder");
  if (listed == settings.end()) {
    if (to.added.empty()) refuse(path, "no added_tokens_decoder");
    return;
  }
  for (const auto& [number, token] : listed->items()) {
    const auto id = static_cast<token_id>(std::stoll(number));
    auto content = token.at("content").get<std::string>();
    for (const auto* key : {"lstrip", "rstrip", "single_word"})
      if (token.value(key, false))
        refuse(path, std::string(key) + " of added token " + content + " is set, which is not implemented");
    if (const auto found = known.find(id); found == known.end())
      to.added.push_back({std::move(content), id, token.value("special", false)});
    else if (found->second != content)
      refuse_other_name(path, number, content, found->second);
  }
}

} // namespace

void tokenizer::tables::take(const text::tokenizer_files& files) {
  vocabulary_file = files.vocabulary_file;
  ids.reserve(files.vocabulary.size() + 128);
  bytes.reserve(files.vocabulary.size() + 128);
  for (const auto& [token, id] : files.vocabulary) add(files.vocabulary_file, token, id);
  std::array<text::bpe::id, 256> byte_ids{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string token;
    base::utf8::append(text::character_of(static_cast<unsigned char>(byte)), token);
    byte_ids[byte] = required(files.vocabulary_file, token);
  }
  merges = text::bpe(byte_ids, files.merges.size());
  merge_count = files.merges.size();
  for (const auto& [left, right] : files.merges)
    merges.add_merge(required(files.vocabulary_file, left), required(files.vocabulary_file, right),
                     required(files.vocabulary_file, left + right));
  for (const auto& [content, id, is_special] : files.added) {
    add(files.vocabulary_file, content, id);
    bytes[static_cast<std::size_t>(id)] = content;
    special[static_cast<std::size_t>(id)] = is_special;
    added.emplace_back(content, id);
    added_trie.add(content, id);
  }
  std::sort(added.begin(), added.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
}

void tokenizer::tables::take_settings(const std::filesystem::path& path, const nlohmann::json& settings) {
  if (settings.contains("bad_token_ids")) bad_ids = settings["bad_token_ids"].get<std::vector<token_id>>();
  // A name is a string or an object with `content`. If unk is absent, pad replaces it.
  auto named = [&](const char* key) -> std::optional<token_id> {
    auto found = settings.find(key);
    if (found == settings.end() || found->is_null()) return std::nullopt;
    return required(path, found->is_object() ? found->at("content").get<std::string>() : found->get<std::string>());
  };
  eos = named("eos_token").value_or(0);
  pad = named("pad_token").value_or(eos);
  bos = named("bos_token").value_or(pad);
  unk = named("unk_token").value_or(pad);
}

tokenizer::tokenizer(std::shared_ptr<const tables> t) : tables_(std::move(t)) {}

tokenizer tokenizer::open(const std::filesystem::path& directory) {
  const auto whole = directory / "tokenizer.json";
  const bool is_whole = exists(symlink_status(whole)); // a broken link is an error, not a reason to read other files
  auto files = is_whole ? text::read_tokenizer_json(whole) : text::read_vocabulary_and_merges(directory);
  const auto path = directory / "tokenizer_config.json";
  const auto settings = read_json(path);
  auto result = std::make_shared<tables>();
  try {
    read_added_tokens(path, settings, files);
    const auto listed = files.merges.size();
    if (const auto missing = is_whole ? 0 : text::add_missing_merges(files); missing > 0) {
      result->derived_merges = missing;
      log_warning("tokenizer: " + (directory / "merges.txt").string() + " has " + std::to_string(listed) +
                  " of the vocabulary's " + std::to_string(listed + missing) +
                  " merges; the others follow from its ids");
    }
    result->take(files);
    result->take_settings(path, settings);
  } catch (const std::logic_error&) { // thrown by std::stoll
    refuse(path, "an id of added_tokens_decoder is not a number");
  } catch (const nlohmann::json::exception& e) {
    refuse(path, e.what());
  }
  return tokenizer(std::move(result));
}

void tokenizer::tables::encode_plain(std::string_view piece, std::size_t most, std::vector<token_id>& out) const {
  if (piece.empty()) return;
  auto normal = text::nfc(piece);
  for (auto word : text::pretokenize(normal)) {
    if (out.size() > most) return;
    merges.encode(word, out);
  }
}

std::vector<token_id> tokenizer::encode(std::string_view raw) const {
  return encode(raw, {});
}

std::vector<token_id> tokenizer::encode(std::string_view raw, std::span<const stretch> quoted, std::size_t most) const {
  auto valid = base::utf8::lossy(raw);
  std::string_view rest = valid;
  std::vector<token_id> result;
  result.reserve(std::min(rest.size() / 3, most) + 8);
  for (std::size_t done = 0, from = 0; done < rest.size() && result.size() <= most;) {
    auto match = tables_->added_trie.find(rest, from);
    while (!quoted.empty() && quoted.front().end <= match.begin) quoted = quoted.subspan(1);
    auto touches = !quoted.empty() && quoted.front().begin < match.end;
    if (match.end > match.begin && touches && is_special(match.id)) {
      from = match.begin + 1;
      continue;
    }
    tables_->encode_plain(rest.substr(done, match.begin - done), most, result);
    if (match.end > match.begin && result.size() <= most) result.push_back(match.id);
    done = from = match.end;
  }
  return result;
}

std::string tokenizer::decode(std::span<const token_id> ids, bool skip_special) const {
  std::string raw;
  for (auto id : ids)
    if (!skip_special || !is_special(id)) raw += bytes(id);
  return base::utf8::lossy(raw);
}

std::string_view tokenizer::bytes(token_id id) const {
  return id >= 0 && id < static_cast<token_id>(tables_->bytes.size()) ? tables_->bytes[static_cast<std::size_t>(id)]
                                                                      : std::string_view();
}

token_id tokenizer::id(std::string_view token) const {
  return find(token).value_or(tables_->unk);
}

std::optional<token_id> tokenizer::find(std::string_view token) const {
  auto found = tables_->ids.find(token);
  return found == tables_->ids.end() ? std::nullopt : std::optional(found->second);
}

bool tokenizer::is_special(token_id id) const {
  return id >= 0 && id < static_cast<token_id>(tables_->special.size()) &&
         tables_->special[static_cast<std::size_t>(id)];
}

std::span<const token_id> tokenizer::bad_token_ids() const {
  return tables_->bad_ids;
}
std::vector<std::pair<std::string, token_id>> tokenizer::added_tokens() const {
  return tables_->added;
}
token_id tokenizer::size() const {
  return static_cast<token_id>(tables_->ids.size());
}
std::size_t tokenizer::merges() const {
  return tables_->merge_count;
}
std::size_t tokenizer::derived_merges() const {
  return tables_->derived_merges;
}
token_id tokenizer::bos() const {
  return tables_->bos;
}
token_id tokenizer::eos() const {
  return tables_->eos;
}
token_id tokenizer::pad() const {
  return tables_->pad;
}
token_id tokenizer::unk() const {
  return tables_->unk;
}

} // namespace parley::inference
