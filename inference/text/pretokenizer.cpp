#include "inference/text/pretokenizer.hpp"

#include "base/utf8.hpp"
#include "inference/text/unicode.hpp"

namespace parley::inference::text {

namespace {

struct character {
  char32_t code;
  std::size_t begin; // byte offset
  character_class kind;
};

/// Each rule takes the index of the first character and returns the index after its match, or the first index again.
class matcher {
public:
  explicit matcher(std::string_view text) : text_(text) {
    characters_.reserve(text.size() + 1);
    for (std::size_t at = 0; at < text.size();) {
      auto next = base::utf8::decode(text.substr(at));
      characters_.push_back({next.code, at, class_of(next.code)});
      at += next.size;
    }
    count_ = characters_.size();
    characters_.push_back({0, text.size(), character_class::other});
  }

  std::vector<std::string_view> words() const {
    std::vector<std::string_view> result;
    for (std::size_t at = 0; at < count_;) {
      auto end = next_word(at);
      auto begin_byte = characters_[at].begin;
      result.push_back(text_.substr(begin_byte, characters_[end].begin - begin_byte));
      at = end;
    }
    return result;
  }

private:
  std::size_t next_word(std::size_t at) const {
    for (auto rule : {&matcher::contraction, &matcher::letters, &matcher::digit, &matcher::symbols, &matcher::spaces}) {
      auto end = (this->*rule)(at);
      if (end > at) return end;
    }
    return at + 1;
  }

  /// (?i:'s|'t|'re|'ve|'m|'ll|'d); ſ folds to s.
  std::size_t contraction(std::size_t at) const {
    if (code(at) != U'\'') return at;
    auto first = lower(code(at + 1));
    if (first == U's' || first == U't' || first == U'm' || first == U'd') return at + 2;
    auto second = lower(code(at + 2));
    bool two =
        (first == U'r' && second == U'e') || (first == U'v' && second == U'e') || (first == U'l' && second == U'l');
    return two ? at + 3 : at;
  }

  /// [^\r\n\p{L}\p{N}]?\p{L}+
  std::size_t letters(std::size_t at) const {
    auto start = at;
    if (!is(at, character_class::letter) && !is(at, character_class::number) && !line_end(at)) ++start;
    auto end = run(start, character_class::letter);
    return end > start ? end : at;
  }

  /// \p{N}
  std::size_t digit(std::size_t at) const { return is(at, character_class::number) ? at + 1 : at; }

  ///  ?[^\s\p{L}\p{N}]+[\r\n]*
  std::size_t symbols(std::size_t at) const {
    auto start = code(at) == U' ' ? at + 1 : at;
    auto end = run(start, character_class::other);
    if (end == start) return at;
    while (line_end(end)) ++end;
    return end;
  }

  /// \s*[\r\n]+|\s+(?!\S)|\s+
  std::size_t spaces(std::size_t at) const {
    auto end = run(at, character_class::space);
    for (auto back = end; back > at; --back)
      if (line_end(back - 1)) return back;
    // The last space before a word belongs to the word.
    return end < count_ && end > at + 1 ? end - 1 : end;
  }

  static char32_t lower(char32_t code) {
    if (code >= U'A' && code <= U'Z') return code + 32;
    return code == 0x17F ? U's' : code;
  }

  char32_t code(std::size_t at) const { return at < count_ ? characters_[at].code : 0; }
  bool is(std::size_t at, character_class kind) const { return at < count_ && characters_[at].kind == kind; }
  bool line_end(std::size_t at) const { return code(at) == U'\r' || code(at) == U'\n'; }
  std::size_t run(std::size_t at, character_class kind) const {
    while (is(at, kind)) ++at;
    return at;
  }

  std::string_view text_;
  std::vector<character> characters_; // including the position after the last one
  std::size_t count_ = 0;
};

} // namespace

std::vector<std::string_view> pretokenize(std::string_view text) {
  return matcher(text).words();
}

} // namespace parley::inference::text
