#include "inference/chat/json_grammar.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace parley::inference::chat {
namespace {

using schema_json = nlohmann::json;
using rule = json_grammar::rule;

constexpr int most_depth = 16;              ///< of a schema, with what it refers to
constexpr std::size_t most_properties = 64; ///< of one object: a state remembers each in a bit

// Beyond these limits a value may be any. Without them, a schema of a few kilobytes whose parts refer to each other could
// unfold into gigabytes.
constexpr std::size_t most_rules = 4096;
constexpr std::size_t most_bytes = 4 << 20;     ///< of all rules' texts
constexpr std::size_t most_shortest = 16 << 10; ///< bytes of a rule's shortest value
constexpr std::size_t most_literals = std::numeric_limits<std::uint16_t>::max();

std::string json_text(const schema_json& value) {
  return value.dump(-1, ' ', false, schema_json::error_handler_t::replace);
}

/// Turns one schema into rules.
class schema_reader {
public:
  /// `left`: the bytes that the rules' texts may still have.
  schema_reader(const schema_json& whole, std::vector<rule>& rules, std::size_t& left)
      : whole_(whole), rules_(rules), left_(left) {}

  /// The number of the rule. What was read before, at this depth, is the same rule.
  std::uint16_t read(const schema_json& schema, int depth = 0) {
    if (!schema.is_object() || depth > most_depth || rules_.size() >= most_rules || left_ == 0)
      return json_grammar::any;
    const std::pair key(&schema, depth);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    const auto number = read_anew(schema, depth);
    known_.emplace(key, number);
    return number;
  }

private:
  std::uint16_t read_anew(const schema_json& schema, int depth) {
    if (const auto* there = referred(schema)) return read(*there, depth + 1);
    for (const char* name : {"anyOf", "oneOf"})
      if (schema.contains(name)) return read_choice(schema[name], depth);
    rule made;
    read_types(schema, made);
    read_literals(schema, made);
    read_properties(schema, made, depth);
    if (schema.contains("items")) made.items = read(schema["items"], depth + 1);
    return add(std::move(made));
  }

  const schema_json* referred(const schema_json& schema) const {
    if (!schema.contains("$ref") || !schema["$ref"].is_string()) return nullptr;
    const auto path = schema["$ref"].get<std::string>();
    if (!path.starts_with("#/")) return nullptr;
    try {
      return &whole_.at(schema_json::json_pointer(path.substr(1)));
    } catch (const schema_json::exception&) {
      return nullptr;
    }
  }

  /// One rule for all branches: their types together, and the properties and items of the first that has any.
  std::uint16_t read_choice(const schema_json& branches, int depth) {
    if (!branches.is_array() || branches.empty()) return json_grammar::any;
    rule made;
    made.types = 0;
    bool literal = true;
    std::set<std::uint16_t> numbers;
    pay(branches.size());
    for (const auto& branch : branches) {
      const auto number = read(branch, depth + 1);
      if (!numbers.insert(number).second) continue;
      const auto& one = rules_[number];
      made.types |= one.types;
      literal = literal && !one.literals.empty();
      made.literals.insert(made.literals.end(), one.literals.begin(), one.literals.end());
      if (made.properties.empty()) made.properties = one.properties;
      if (made.items == json_grammar::any) made.items = one.items;
    }
    if (!literal) made.literals.clear();
    sort_literals(made);
    return add(std::move(made));
  }

  void read_types(const schema_json& schema, rule& into) {
    static constexpr std::pair<const char*, std::uint8_t> names[] = {
        {"object", json_grammar::object},   {"array", json_grammar::array},
        {"string", json_grammar::string},   {"number", json_grammar::number | json_grammar::integer},
        {"integer", json_grammar::integer}, {"boolean", json_grammar::boolean},
        {"null", json_grammar::null}};
    std::uint8_t types = 0;
    auto add_type = [&](const schema_json& given) {
      const auto* type = given.get_ptr<const std::string*>();
      for (const auto& [name, bits] : names)
        if (type && *type == name) types |= bits;
    };
    if (schema.contains("type")) {
      pay(schema["type"].size());
      if (schema["type"].is_array())
        for (const auto& each : schema["type"]) add_type(each);
      else
        add_type(schema["type"]);
    } else if (schema.contains("properties")) {
      types = json_grammar::object;
    } else if (schema.contains("items")) {
      types = json_grammar::array;
    }
    if (types != 0) into.types = types;
  }

  static void read_literals(const schema_json& schema, rule& into) {
    if (schema.contains("const")) into.literals.push_back(json_text(schema["const"]));
    if (schema.contains("enum") && schema["enum"].is_array())
      for (const auto& each : schema["enum"]) into.literals.push_back(json_text(each));
    sort_literals(into);
  }

  static void sort_literals(rule& of) {
    std::sort(of.literals.begin(), of.literals.end());
    of.literals.erase(std::unique(of.literals.begin(), of.literals.end()), of.literals.end());
  }

  void read_properties(const schema_json& schema, rule& into, int depth) {
    if (!schema.contains("properties") || !schema["properties"].is_object()) return;
    const auto& given = schema["properties"];
    if (given.size() > most_properties) return;
    const auto& required = required_of(schema);
    for (const auto& [name, value] : given.items())
      into.properties.push_back({json_text(name).substr(1), read(value, depth + 1), required.contains(name)});
    std::sort(into.properties.begin(), into.properties.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
  }

  /// The names in `required`, read once for each object, at whatever depth it is.
  const std::set<std::string_view>& required_of(const schema_json& schema) {
    const auto [place, fresh] = required_.try_emplace(&schema);
    if (!fresh || !schema.contains("required")) return place->second;
    pay(schema["required"].size());
    for (const auto& each : schema["required"])
      if (const auto* name = each.get_ptr<const std::string*>()) place->second.insert(*name);
    return place->second;
  }

  /// What is gone through costs time, whether anything comes of it or not.
  void pay(std::size_t elements) { left_ -= std::min(left_, elements * sizeof(schema_json)); }

  std::uint16_t add(rule made) {
    made.shortest = shortest(made);
    auto bytes = made.shortest.size();
    for (const auto& each : made.literals) bytes += sizeof(std::string) + each.size();
    for (const auto& each : made.properties) bytes += sizeof(json_grammar::property) + each.key.size();
    const bool fits = bytes <= left_ && made.shortest.size() <= most_shortest && made.literals.size() <= most_literals;
    left_ -= std::min(left_, bytes); // a refused rule counts, too: making it took as long
    if (!fits) return json_grammar::any;
    rules_.push_back(std::move(made));
    return static_cast<std::uint16_t>(rules_.size() - 1);
  }

  std::string shortest(const rule& of) const {
    if (!of.literals.empty())
      return *std::min_element(of.literals.begin(), of.literals.end(),
                               [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (of.types & json_grammar::string) return R"("")";
    if (of.types & json_grammar::integer) return "0";
    if (of.types & json_grammar::array) return "[]";
    if (of.types & json_grammar::boolean) return "true";
    if (of.types & json_grammar::null) return "null";
    std::string out = "{";
    for (const auto& each : of.properties)
      if (each.required) out += (out.size() > 1 ? ",\"" : "\"") + each.key + ":" + rules_[each.value].shortest;
    return out + "}";
  }

  const schema_json& whole_;
  std::vector<rule>& rules_;
  std::size_t& left_;
  std::map<std::pair<const schema_json*, int>, std::uint16_t> known_;
  std::map<const schema_json*, std::set<std::string_view>> required_;
};

} // namespace

json_grammar::json_grammar(std::span<const form> forms) : rules_(1) {
  auto left = most_bytes;
  for (const auto& each : forms) {
    const auto schema = schema_json::parse(each.schema.empty() ? R"({"type":"object"})" : each.schema, nullptr, false);
    if (schema.is_discarded()) throw std::invalid_argument("a JSON schema is not JSON");
    const auto value = schema_reader(schema, rules_, left).read(schema);
    shortest_bytes_ = std::max(shortest_bytes_, each.head.size() + rules_[value].shortest.size() + each.tail.size());
    forms_.push_back({each.head, value, each.tail});
  }
  std::sort(forms_.begin(), forms_.end(), [](const auto& a, const auto& b) { return a.head < b.head; });
}

} // namespace parley::inference::chat
