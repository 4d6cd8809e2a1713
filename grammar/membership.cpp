#include "grammar/membership.hpp"

#include <algorithm>

namespace parley::grammar {
namespace {

using kind = json_value::kind;

std::uint8_t type_of(const json_value& value) {
  switch (value.type) {
  case kind::null: return null;
  case kind::boolean: return boolean;
  case kind::number: return number;
  case kind::string: return string;
  case kind::array: return array;
  case kind::object: return object;
  }
  return 0;
}

bool holds_number(const rule_set& in, const rule& of, const json_value& value) {
  const auto read = read_decimal(value.text);
  return (!of.whole || read.whole()) && (of.range == 0xFFFF || in.ranges[of.range].holds(read));
}

bool holds_string(const rule_set& in, const rule& of, const json_value& value) {
  if (of.strings != no_automaton) return in.automata[of.strings].holds(value.text);
  const auto characters =
      std::ranges::count_if(value.text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return characters >= of.least_characters && (of.most_characters == unbounded || characters <= of.most_characters);
}

class members_of {
public:
  members_of(const rule_set& in, const enumerated& values, std::int64_t& work)
      : in_(in), values_(values), work_(work) {}

  bool holds_array(const rule& of, const json_value& value) {
    const auto& items = value.elements;
    if (items.size() < of.least_items || items.size() > of.most_items) return false;
    for (auto i = std::size_t{0}; i < items.size(); ++i)
      if (!holds(in_, values_, i < of.first_items.size() ? of.first_items[i] : of.items, items[i], work_)) return false;
    return true;
  }

  bool holds_object(const rule& of, const json_value& value) {
    if (value.members.size() < of.least_members || value.members.size() > of.most_members) return false;
    std::size_t required = 0;
    for (const auto& one : value.members) {
      const auto& name = one.name;
      const auto key = json_text(name).substr(1);
      const auto own = std::ranges::find(of.properties, key, &property::key);
      work_ -= static_cast<std::int64_t>(of.properties.size());
      if (own != of.properties.end()) {
        required += own->required;
        if (!holds(in_, values_, own->value, one, work_)) return false;
      } else if (!holds_other(of, name, one)) {
        return false;
      }
    }
    return required == static_cast<std::size_t>(std::ranges::count_if(of.properties, &property::required));
  }

private:
  bool holds_other(const rule& of, const std::string& name, const json_value& value) {
    for (const auto& each : of.others)
      if (each.keys == no_automaton || in_.automata[each.keys].holds(name))
        return holds(in_, values_, each.value, value, work_);
    return of.closed_unasked;
  }

  const rule_set& in_;
  const enumerated& values_;
  std::int64_t& work_;
};

} // namespace

bool holds_beside_values(const rule_set& in, const enumerated& values, const rule& of, const json_value& value,
                         std::int64_t& work) {
  const auto type = type_of(value);
  if (!(of.given_types & type) || --work < 0) return false;
  if (!(of.types & type)) return true;
  switch (value.type) {
  case kind::number: return holds_number(in, of, value);
  case kind::string: return holds_string(in, of, value);
  case kind::array: return members_of(in, values, work).holds_array(of, value);
  case kind::object: return members_of(in, values, work).holds_object(of, value);
  default: return true;
  }
}

bool holds(const rule_set& in, const enumerated& values, choice_id of, const json_value& value, std::int64_t& work) {
  return std::ranges::any_of(in.choices[of].rules, [&](auto id) {
    if (--work < 0) return false;
    if (const auto these = values.find(id);
        these != values.end() &&
        std::ranges::none_of(these->second, [&](const auto* one) { return same(*one, value, work); }))
      return false;
    return holds_beside_values(in, values, in.rules[id], value, work);
  });
}

} // namespace parley::grammar
