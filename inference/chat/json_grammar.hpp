#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parley::inference::chat {

/// What an answer must look like: one of several forms, each a text, a JSON value and a text. Of JSON schema it follows
/// type, properties, required, enum, const, items, anyOf and references within the schema; it ignores the rest. Objects
/// with `properties` have no others. Immutable; several threads may use it.
class json_grammar {
public:
  struct form {
    std::string head;
    std::string schema; ///< empty = any object
    std::string tail;
  };

  /// No head may begin another one, except that one may be empty. Throws std::invalid_argument for a schema that is no JSON.
  explicit json_grammar(std::span<const form> forms);

  /// Types that a value may have, as bits.
  enum type : std::uint8_t { object = 1, array = 2, string = 4, number = 8, integer = 16, boolean = 32, null = 64 };

  struct property {
    std::string key; ///< as JSON, without its opening quote
    std::uint16_t value;
    bool required;
  };

  /// A value's rule.
  struct rule {
    std::uint8_t types = object | array | string | number | integer | boolean | null;
    std::vector<std::string> literals{}; ///< as JSON, ascending; not empty = one of these
    std::vector<property> properties{};  ///< by key; empty = any
    std::uint16_t items = any;           ///< of an array
    std::string shortest = R"("")";      ///< the shortest such value, or nearly
  };
  static constexpr std::uint16_t any = 0; ///< the rule that every value obeys

  /// A form, with its schema as a rule.
  struct frame {
    std::string head;
    std::uint16_t value;
    std::string tail;
  };

  const std::vector<rule>& rules() const { return rules_; }
  const std::vector<frame>& forms() const { return forms_; } ///< by head

  /// The most bytes that the shortest text of a form has.
  std::size_t shortest_bytes() const { return shortest_bytes_; }

private:
  std::vector<rule> rules_;
  std::vector<frame> forms_;
  std::size_t shortest_bytes_ = 0;
};

} // namespace parley::inference::chat
