#include "grammar/schema_facts.hpp"

#include "grammar/format.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace parley::grammar {
namespace {

using kind = json_value::kind;

constexpr std::size_t most_patterns = 4; ///< in one `patternProperties`
constexpr std::size_t most_branches = 256;
constexpr std::int64_t most_step = 1'000'000'000;

constexpr std::array refused{"$dynamicRef",
                             "$recursiveRef",
                             "$id",
                             "id",
                             "not",
                             "if",
                             "then",
                             "else",
                             "dependentSchemas",
                             "dependentRequired",
                             "dependencies",
                             "unevaluatedItems",
                             "contains",
                             "minContains",
                             "unevaluatedProperties",
                             "maxContains",
                             "extends",
                             "disallow",
                             "divisibleBy"};

/// Resolves a JSON pointer with what a URI adds to it.
std::optional<std::string> decode_percents(std::string_view text) {
  std::string out;
  for (auto i = std::size_t{0}; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const auto digits = text.substr(i + 1, 2);
    if (digits.size() < 2 || std::from_chars(digits.data(), digits.data() + 2, byte, 16).ptr != digits.data() + 2)
      return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

const json_value* step_into(const json_value& from, std::string name) {
  for (auto at = name.find('~'); at != std::string::npos; at = name.find('~', at + 1))
    if (at + 1 < name.size() && (name[at + 1] == '0' || name[at + 1] == '1'))
      name.replace(at, 2, 1, name[at + 1] == '0' ? '~' : '/');
  if (from.is(kind::object)) return from.find(name);
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (!from.is(kind::array) || error != std::errc{} || end != name.data() + name.size()) return nullptr;
  return index < from.elements.size() ? &from.elements[index] : nullptr;
}

const json_value* find_pointer(const json_value& document, std::string_view reference) {
  if (!reference.starts_with('#')) return nullptr;
  const auto pointer = decode_percents(reference.substr(1));
  if (!pointer || (!pointer->empty() && pointer->front() != '/')) return nullptr;
  const auto* at = &document;
  for (std::string_view rest = *pointer; at && !rest.empty();) {
    if (const auto* id = at == &document ? nullptr : at->find("$id"); id && id->is(kind::string))
      return nullptr; // a document of its own
    rest.remove_prefix(1);
    const auto size = std::min(rest.find('/'), rest.size());
    at = step_into(*at, std::string(rest.substr(0, size)));
    rest.remove_prefix(size);
  }
  return at;
}

bool is_schema(const json_value& value) {
  return value.is(kind::object) || value.is(kind::boolean);
}

} // namespace

/// Reads a keyword after the other. Each reader tells what is wrong; "" = nothing.
struct facts_reader::reading {
  facts_reader& in;
  const json_value& schema;
  schema_facts& out;
  std::optional<scaled> low{}, high{};

  using reader = std::string (reading::*)(const json_value&);
  struct keyword {
    const char* name;
    std::uint8_t about; ///< types that have it
    reader read;
    bool only_schemas = false; ///< other schemas say all
  };
  static const std::array<keyword, 29> keywords;

  void run() {
    for (const auto& value : schema.members) {
      const auto& name = value.name;
      in.work_ -= 32;
      const auto known =
          std::ranges::find(keywords, std::string_view(name), [](const auto& k) { return std::string_view(k.name); });
      std::string wrong;
      if (known != keywords.end()) {
        wrong = (this->*known->read)(value);
        if (wrong.empty()) out.about |= known->about;
        if (!known->only_schemas) out.plain = true;
      } else if (std::ranges::find(refused, std::string_view(name)) != refused.end() && !is_harmless(name, value)) {
        wrong = "is not supported";
      }
      if (!wrong.empty()) in.object_(schema, name, std::move(wrong));
    }
    finish_numbers();
  }

  /// The name of the whole document changes nothing, nor do branches without an `if`.
  bool is_harmless(std::string_view name, const json_value& value) const {
    if (name == "$id" || name == "id") return &schema == &in.document_ || !value.is(kind::string);
    if (name == "then" || name == "else") return !schema.find("if");
    if (name == "if") return !schema.find("then") && !schema.find("else");
    if (name.starts_with("unevaluated")) return value.truth || (value.is(kind::object) && value.members.empty());
    if (name.starts_with("depend")) return value.is(kind::object) && value.members.empty();
    if (name == "minContains" || name == "maxContains") return !schema.find("contains");
    return false;
  }

  static std::optional<std::uint32_t> count(const json_value& value) {
    if (!value.is(kind::number)) return std::nullopt;
    const auto number = read_decimal(value.text);
    if (number.negative || !number.whole()) return std::nullopt;
    const auto units = in_units(number).value / 1'000'000'000'000'000;
    return static_cast<std::uint32_t>(std::min<int128>(units, unbounded));
  }

  template<auto Member>
  std::string read_count(const json_value& value) {
    const auto read = count(value);
    if (!read) return "is not a count";
    out.*Member = *read;
    return {};
  }

  template<auto Member>
  std::string read_branches(const json_value& value) {
    if (!value.is(kind::array) || value.elements.empty() || !std::ranges::all_of(value.elements, is_schema))
      return "is not a list of schemas";
    if (value.elements.size() > most_branches) return "has more than 256 schemas";
    in.work_ -= static_cast<std::int64_t>(value.elements.size());
    out.*Member = &value.elements;
    return {};
  }

  template<auto Member>
  std::string read_schema(const json_value& value) {
    if (!is_schema(value)) return "is not a schema";
    out.*Member = &value;
    return {};
  }

  std::string read_reference(const json_value& value) {
    if (!value.is(kind::string)) return "is not a string";
    out.reference = find_pointer(in.document_, value.text);
    if (out.reference && is_schema(*out.reference)) return {};
    out.reference = nullptr;
    return "is not a reference within the schema";
  }

  std::string read_type(const json_value& value) {
    std::uint8_t types = 0;
    bool integer = false;
    const auto add = [&](const json_value& one) {
      static constexpr std::pair<const char*, std::uint8_t> names[] = {{"object", object},   {"array", array},
                                                                       {"string", string},   {"number", number},
                                                                       {"boolean", boolean}, {"null", null}};
      if (one.is(kind::string) && one.text == "integer") return integer = true;
      for (const auto& [name, bits] : names)
        if (one.is(kind::string) && one.text == name) types |= bits;
      return one.is(kind::string) && (one.text == "object" || types != 0);
    };
    in.work_ -= static_cast<std::int64_t>(value.elements.size());
    const bool good =
        value.is(kind::array) ? !value.elements.empty() && std::ranges::all_of(value.elements, add) : add(value);
    if (!good) return "is no type";
    out.whole = integer && !(types & number);
    out.types = integer ? static_cast<std::uint8_t>(types | number) : types;
    out.typed = true;
    return {};
  }

  std::string read_values(const json_value& value) {
    if (!value.is(kind::array) || value.elements.empty()) return "is not a list of values";
    out.values = &value.elements;
    return {};
  }

  std::string read_value(const json_value& value) {
    out.value = &value;
    return {};
  }

  void bound(std::optional<scaled>& to, int128 units, bool lower) {
    if (!to || (lower ? units > to->value : units < to->value)) to = scaled{units, true};
  }
  template<bool Lower, bool Included>
  std::string read_bound(const json_value& value) {
    if (!value.is(kind::number)) return "is not a number";
    const auto [units, exact] = in_units(read_decimal(value.text)); // rounded down
    if constexpr (Lower)
      bound(low, exact && Included ? units : units + 1, true);
    else
      bound(high, exact && !Included ? units - 1 : units, false);
    return {};
  }

  std::string read_step(const json_value& value) {
    if (!value.is(kind::number)) return "is not a number";
    const auto number = read_decimal(value.text);
    if (number.negative || number.digits.empty()) return "is not more than 0";
    if (!number.whole()) return "is only supported for integers";
    const auto units = in_units(number).value / 1'000'000'000'000'000;
    if (units > most_step) return "is more than 1000000000";
    step = static_cast<std::int64_t>(units);
    return {};
  }
  std::int64_t step = 0; ///< 0 = none is asked for

  void finish_numbers() {
    if (!low && !high && step == 0) return;
    const auto far = in_units(read_decimal("1e34")).value;
    out.range =
        number_range{low ? low->value : -far, high ? high->value : far, step > 0, std::max<std::int64_t>(step, 1)};
  }

  std::string read_string_pattern(const json_value& value) {
    if (!value.is(kind::string)) return "is not a string";
    const auto& read = in.strings_of(value.text);
    if (!read.strings) return read.objection;
    out.patterns.push_back(*read.strings);
    return {};
  }

  /// One that is not known says what the string is for, and no more.
  std::string read_format(const json_value& value) {
    if (const auto* strings = value.is(kind::string) ? strings_of_format(value.text) : nullptr) {
      out.patterns.push_back(*strings);
      out.about |= string;
      in.work_ -= static_cast<std::int64_t>(strings->states());
    }
    return {};
  }

  std::string read_properties(const json_value& value) {
    if (!value.is(kind::object)) return "is not an object";
    in.work_ -= static_cast<std::int64_t>(8 * value.members.size());
    for (const auto& one : value.members) {
      if (!is_schema(one)) return "has a property that is no schema";
      out.properties.emplace(one.name, &one);
    }
    out.has_properties = !value.members.empty();
    return {};
  }

  std::string read_pattern_properties(const json_value& value) {
    if (!value.is(kind::object)) return "is not an object";
    if (value.members.size() > most_patterns) return "has more than 4 patterns";
    std::vector<std::pair<automaton, const json_value*>> read;
    for (const auto& one : value.members) {
      const auto& names = in.strings_of(one.name);
      if (!is_schema(one)) return "has a property that is no schema";
      if (!names.strings) return "has a pattern that " + names.objection;
      read.emplace_back(automaton(*names.strings, in.work_), &one);
    }
    out.pattern_properties = std::move(read);
    return {};
  }

  std::string read_required(const json_value& value) {
    in.work_ -= static_cast<std::int64_t>(8 * value.elements.size());
    if (!value.is(kind::array)) return "is not a list of names";
    bool good = true;
    for (const auto& each : value.elements) {
      if (each.is(kind::string))
        out.required.emplace_back(each.text);
      else
        good = false;
    }
    std::ranges::sort(out.required);
    out.required.erase(std::unique(out.required.begin(), out.required.end()), out.required.end());
    return good ? "" : "is not a list of names";
  }

  /// Before 2020, a list here was what `prefixItems` is now.
  std::string read_items(const json_value& value) {
    if (value.is(kind::array)) return read_first_items(value);
    if (!is_schema(value)) return "is not a schema";
    out.items = &value;
    return {};
  }

  std::string read_first_items(const json_value& value) {
    if (!value.is(kind::array) || !std::ranges::all_of(value.elements, is_schema)) return "is not a list of schemas";
    if (value.elements.size() > most_branches) return "has more than 256 schemas";
    out.first_items = &value.elements;
    return {};
  }

  std::string read_more_items(const json_value& value) {
    if (const auto* items = schema.find("items"); !items || !items->is(kind::array)) return {};
    return read_items(value);
  }

  std::string read_unique(const json_value& value) {
    const bool asked = !value.is(kind::boolean) || value.truth;
    return asked ? "is not supported" : "";
  }
};

const std::array<facts_reader::reading::keyword, 29> facts_reader::reading::keywords{{
    {"$ref", 0, &reading::read_reference, true},
    {"type", 0, &reading::read_type},
    {"enum", 0, &reading::read_values},
    {"const", 0, &reading::read_value},
    {"allOf", 0, &reading::read_branches<&schema_facts::all_of>, true},
    {"anyOf", 0, &reading::read_branches<&schema_facts::any_of>, true},
    {"oneOf", 0, &reading::read_branches<&schema_facts::one_of>, true},
    {"minimum", number, &reading::read_bound<true, true>},
    {"maximum", number, &reading::read_bound<false, true>},
    {"exclusiveMinimum", number, &reading::read_bound<true, false>},
    {"exclusiveMaximum", number, &reading::read_bound<false, false>},
    {"multipleOf", number, &reading::read_step},
    {"minLength", string, &reading::read_count<&schema_facts::least_characters>},
    {"maxLength", string, &reading::read_count<&schema_facts::most_characters>},
    {"pattern", string, &reading::read_string_pattern},
    {"format", 0, &reading::read_format},
    {"properties", object, &reading::read_properties},
    {"patternProperties", object, &reading::read_pattern_properties},
    {"additionalProperties", object, &reading::read_schema<&schema_facts::additional>},
    {"propertyNames", object, &reading::read_schema<&schema_facts::names>},
    {"required", object, &reading::read_required},
    {"minProperties", object, &reading::read_count<&schema_facts::least_members>},
    {"maxProperties", object, &reading::read_count<&schema_facts::most_members>},
    {"prefixItems", array, &reading::read_first_items},
    {"items", array, &reading::read_items},
    {"additionalItems", array, &reading::read_more_items},
    {"minItems", array, &reading::read_count<&schema_facts::least_items>},
    {"maxItems", array, &reading::read_count<&schema_facts::most_items>},
    {"uniqueItems", array, &reading::read_unique},
}};

const pattern& facts_reader::strings_of(const std::string& expression) {
  const auto [place, fresh] = patterns_.try_emplace(expression);
  if (fresh) place->second = read_pattern(expression, work_);
  return place->second;
}

const schema_facts& facts_reader::of(const json_value& schema) {
  const auto [place, fresh] = known_.try_emplace(&schema);
  if (fresh) reading{*this, schema, place->second}.run();
  return place->second;
}

} // namespace parley::grammar
