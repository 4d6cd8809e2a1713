#include "grammar/format.hpp"

#include "base/assert.hpp"
#include "grammar/pattern.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <utility>

// NOLINTBEGIN(cppcoreguidelines-macro-usage): the expressions are put together from literals
#define PARLEY_DATE                                                                                                    \
  "([1-9][0-9]{3})-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2["  \
  "0-8]))"
#define PARLEY_TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define PARLEY_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
// NOLINTEND(cppcoreguidelines-macro-usage)

namespace parley::grammar {
namespace {

constexpr std::pair<std::string_view, const char*> formats[] = {
    {"date", "^" PARLEY_DATE "$"},
    {"time", "^" PARLEY_TIME "$"},
    {"date-time", "^" PARLEY_DATE "T" PARLEY_TIME "$"},
    {"duration", "^P([0-9]{1,4}W|([0-9]{1,4}Y)?([0-9]{1,4}M)?[0-9]{1,4}D|T([0-9]{1,4}H)?([0-9]{1,4}M)?[0-9]{1,4}S)$"},
    {"email", "^[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?"
              "(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?)+$"},
    {"hostname", "^[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?)*$"},
    {"ipv4", "^(" PARLEY_BYTE "\\.){3}" PARLEY_BYTE "$"},
    {"ipv6", "^([0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}$"},
    {"uuid", "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"},
};

std::map<std::string_view, automaton::table> read_formats() {
  std::map<std::string_view, automaton::table> out;
  for (const auto& [name, expression] : formats) {
    auto work = std::numeric_limits<std::int64_t>::max();
    auto read = read_pattern(expression, work);
    PARLEY_ASSERT(read.strings, "the expressions are good");
    out.emplace(name, std::move(*read.strings));
  }
  return out;
}

} // namespace

const automaton::table* strings_of_format(std::string_view name) {
  static const auto known = read_formats();
  const auto at = known.find(name);
  return at == known.end() ? nullptr : &at->second;
}

} // namespace parley::grammar
