#include "protocol/json/spaced.hpp"

#include "protocol/json/writer.hpp"

namespace parley::protocol::json {

void append_spaced(value of, std::string& out) {
  if (!of.present()) return;
  const auto& nodes = of.in().nodes;
  const bool object = of.is(kind::object);
  if (of.is(kind::string)) return append_string(unescape(of), out);
  if (!object && !of.is(kind::array)) {
    out += of.raw();
    return;
  }
  out += object ? '{' : '[';
  bool is_key = object;
  const auto begin = of.index() + 1, end = nodes[of.index()].next;
  for (auto at = begin; at < end; at = nodes[at].next) {
    if (at != begin) out += object && !is_key ? ": " : ", ";
    append_spaced({of.in(), at}, out);
    is_key = object && !is_key;
  }
  out += object ? '}' : ']';
}

} // namespace parley::protocol::json
