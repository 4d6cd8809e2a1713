#include "grammar/json_value.hpp"

#include "grammar/decimal.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace parley::grammar {
namespace {

using json = nlohmann::json;
using kind = json_value::kind;

constexpr std::size_t most_depth = 64;

/// Of members with one name the last stays, in its place.
void drop_duplicates(std::vector<json_value>& members) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](auto i) -> const std::string& { return members[i].name; });
  std::vector<bool> drop(members.size());
  bool any = false;
  for (auto i = std::size_t{1}; i < order.size(); ++i)
    if (members[order[i - 1]].name == members[order[i]].name) drop[order[i - 1]] = any = true;
  if (!any) return;
  auto to = std::size_t{0};
  for (auto i = std::size_t{0}; i < members.size(); ++i) {
    if (drop[i]) continue;
    if (to != i) members[to] = std::move(members[i]);
    ++to;
  }
  members.resize(to);
}

/// Builds the value while it is parsed.
class builder : public nlohmann::json_sax<json> {
public:
  json_value out;

  bool null() override { return add({kind::null}); }
  bool boolean(bool value) override { return add({kind::boolean, value}); }
  bool number_integer(number_integer_t value) override { return add({kind::number, false, std::to_string(value)}); }
  bool number_unsigned(number_unsigned_t value) override { return add({kind::number, false, std::to_string(value)}); }
  bool number_float(number_float_t, const string_t& text) override { return add({kind::number, false, text}); }
  bool string(string_t& text) override { return add({kind::string, false, std::move(text)}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open({kind::object}); }
  bool start_array(std::size_t) override { return open({kind::array}); }
  bool key(string_t& name) override {
    open_.back().members.emplace_back().name = std::move(name);
    return true;
  }
  bool end_object() override {
    if (open_.back().members.size() > 1) drop_duplicates(open_.back().members);
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

private:
  bool open(json_value value) {
    open_.push_back(std::move(value));
    return open_.size() <= most_depth;
  }
  bool close() {
    auto whole = std::move(open_.back());
    open_.pop_back();
    return add(std::move(whole));
  }
  /// The member that has only a name so far becomes that value.
  static void give(json_value& member, json_value&& value) {
    value.name = std::move(member.name);
    member = std::move(value);
  }
  bool add(json_value value) {
    if (open_.empty())
      out = std::move(value);
    else if (open_.back().is(kind::object))
      give(open_.back().members.back(), std::move(value));
    else
      open_.back().elements.push_back(std::move(value));
    return true;
  }

  std::vector<json_value> open_;
};

bool same_number(std::string_view a, std::string_view b, std::int64_t& work) {
  if (a == b) return true;
  const auto is_plain = [](std::string_view text) {
    return text != "-0" && text.find_first_of(".eE") == std::string_view::npos;
  };
  if (is_plain(a) && is_plain(b)) return false;
  work -= 64;
  return read_decimal(a) == read_decimal(b);
}

bool same_members(const json_value& a, const json_value& b, std::int64_t& work) {
  return std::ranges::all_of(a.members, [&](const auto& each) {
    const auto* other = b.find(each.name);
    work -= static_cast<std::int64_t>(b.members.size());
    return other && work > 0 && same(each, *other, work);
  });
}

} // namespace

const json_value* json_value::find(std::string_view name) const {
  const auto at = std::ranges::find(members, name, [](const auto& each) { return std::string_view(each.name); });
  return at == members.end() ? nullptr : &*at;
}

std::optional<json_value> read_json(std::string_view text) {
  builder read;
  if (!json::sax_parse(text.begin(), text.end(), &read)) return std::nullopt;
  return std::move(read.out);
}

std::string json_text(std::string_view of) {
  return json(of).dump(-1, ' ', false, json::error_handler_t::replace);
}

void append_json(const json_value& of, std::string& out) {
  switch (of.type) {
  case kind::null: out += "null"; return;
  case kind::boolean: out += of.truth ? "true" : "false"; return;
  case kind::number: out += of.text; return;
  case kind::string: out += json_text(of.text); return;
  case kind::array: {
    out += '[';
    for (auto i = std::size_t{0}; i < of.elements.size(); ++i) {
      if (i > 0) out += ',';
      append_json(of.elements[i], out);
    }
    out += ']';
    return;
  }
  case kind::object: {
    out += '{';
    for (auto i = std::size_t{0}; i < of.members.size(); ++i) {
      if (i > 0) out += ',';
      out += json_text(of.members[i].name) + ':';
      append_json(of.members[i], out);
    }
    out += '}';
    return;
  }
  }
}

bool same(const json_value& a, const json_value& b, std::int64_t& work) {
  if (--work < 0 || a.type != b.type) return false;
  switch (a.type) {
  case kind::null: return true;
  case kind::boolean: return a.truth == b.truth;
  case kind::number: return same_number(a.text, b.text, work);
  case kind::string: return a.text == b.text;
  case kind::array:
    return std::ranges::equal(a.elements, b.elements,
                              [&](const auto& one, const auto& other) { return same(one, other, work); });
  case kind::object: return a.members.size() == b.members.size() && same_members(a, b, work);
  }
  return false;
}

} // namespace parley::grammar
