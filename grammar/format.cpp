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
#define PARLEY_IPV4 "(" PARLEY_BYTE "\\.){3}" PARLEY_BYTE
#define PARLEY_N "[0-9]{1,4}"
#define PARLEY_HOURS "T(" PARLEY_N "H(" PARLEY_N "M(" PARLEY_N "S)?)?|" PARLEY_N "M(" PARLEY_N "S)?|" PARLEY_N "S)"
#define PARLEY_ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define PARLEY_LABEL "[A-Za-z0-9]{1,15}(-[A-Za-z0-9]{1,15}){0,3}"
#define PARLEY_GROUP "[0-9A-Fa-f]{1,4}"
#define PARLEY_GROUPS "(" PARLEY_GROUP ":)"
#define PARLEY_MORE "(:" PARLEY_GROUP ")"
// NOLINTEND(cppcoreguidelines-macro-usage)

namespace parley::grammar {
namespace {

constexpr std::pair<std::string_view, const char*> formats[] = {
    {"date", "^" PARLEY_DATE "$"},
    {"time", "^" PARLEY_TIME "$"},
    {"date-time", "^" PARLEY_DATE "T" PARLEY_TIME "$"},
    {"duration", "^P((" PARLEY_N "Y(" PARLEY_N "M(" PARLEY_N "D)?)?|" PARLEY_N "M(" PARLEY_N "D)?|" PARLEY_N
                 "D)(" PARLEY_HOURS ")?|" PARLEY_HOURS "|" PARLEY_N "W)$"},
    {"email", "^" PARLEY_ATOM "(\\." PARLEY_ATOM ")*@" PARLEY_LABEL "(\\." PARLEY_LABEL "){1,2}$"},
    {"hostname", "^" PARLEY_LABEL "(\\." PARLEY_LABEL "){0,2}$"},
    {"ipv4", "^" PARLEY_IPV4 "$"},
    {"ipv6", "^(" PARLEY_GROUPS "{7}" PARLEY_GROUP "|" PARLEY_GROUPS "{1,7}:|:" PARLEY_MORE "{1,7}|::|" PARLEY_GROUPS
             "{1,6}" PARLEY_MORE "|" PARLEY_GROUPS "{1,5}" PARLEY_MORE "{1,2}|" PARLEY_GROUPS "{1,4}" PARLEY_MORE
             "{1,3}|" PARLEY_GROUPS "{1,3}" PARLEY_MORE "{1,4}|" PARLEY_GROUPS "{1,2}" PARLEY_MORE
             "{1,5}|" PARLEY_GROUPS PARLEY_MORE "{1,6}|(" PARLEY_GROUPS "{6}|" PARLEY_GROUPS "{5}:|" PARLEY_GROUPS
             "{4}:" PARLEY_GROUPS "?|" PARLEY_GROUPS "{3}:" PARLEY_GROUPS "{0,2}|" PARLEY_GROUPS "{2}:" PARLEY_GROUPS
             "{0,3}|" PARLEY_GROUPS ":" PARLEY_GROUPS "{0,4}|::" PARLEY_GROUPS "{0,5})" PARLEY_IPV4 ")$"},
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
