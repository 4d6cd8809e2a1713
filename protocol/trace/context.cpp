#include "protocol/trace/context.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace parley::protocol::trace {
namespace {

constexpr std::size_t most_state_members = 32;

/// The value of a lower-case digit; -1 = it is none.
int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool read_hex(std::string_view text, std::uint8_t* to) {
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    to[i / 2] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

template<std::size_t N>
bool is_zero(const std::array<std::uint8_t, N>& id) {
  return std::all_of(id.begin(), id.end(), [](auto byte) { return byte == 0; });
}

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '*' || c == '/';
}

/// A key, or one half of `tenant@system`; `digits`: it may begin with one.
bool is_key(std::string_view text, std::size_t most, bool digits) {
  if (text.empty() || text.size() > most || !std::all_of(text.begin(), text.end(), is_key_character)) return false;
  return (text[0] >= 'a' && text[0] <= 'z') || (digits && text[0] >= '0' && text[0] <= '9');
}

bool is_state_key(std::string_view key) {
  const auto at = key.find('@');
  if (at == std::string_view::npos) return is_key(key, 256, false);
  return is_key(key.substr(0, at), 241, true) && is_key(key.substr(at + 1), 14, false);
}

bool is_state_value(std::string_view value) {
  const auto fits = [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; };
  return !value.empty() && value.size() <= 256 && value.back() != ' ' && std::all_of(value.begin(), value.end(), fits);
}

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template<std::size_t N>
std::array<std::uint8_t, N> draw(const random_source& random) {
  std::array<std::uint8_t, N> id{};
  do {
    for (std::size_t i = 0; i < N; i += 8) {
      auto bits = random();
      for (std::size_t k = 0; k < 8; ++k, bits >>= 8) id[i + k] = static_cast<std::uint8_t>(bits);
    }
  } while (is_zero(id));
  return id;
}

} // namespace

std::string hex(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * size);
  for (std::size_t i = 0; i < size; ++i) {
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
  }
  return out;
}

std::optional<caller> read_caller(std::string_view traceparent, std::string_view tracestate) {
  constexpr std::size_t size = 55;
  std::uint8_t version = 0;
  caller out;
  if (traceparent.size() < size || traceparent[2] != '-' || traceparent[35] != '-' || traceparent[52] != '-' ||
      !read_hex(traceparent.substr(0, 2), &version) || !read_hex(traceparent.substr(3, 32), out.trace.data()) ||
      !read_hex(traceparent.substr(36, 16), out.span.data()) || !read_hex(traceparent.substr(53, 2), &out.flags))
    return std::nullopt;
  // Later versions may say more behind what this one says.
  const bool longer = traceparent.size() > size;
  if (version == 0xff || is_zero(out.trace) || is_zero(out.span)) return std::nullopt;
  if (longer && (version == 0 || traceparent[size] != '-' || traceparent.find(',') != std::string_view::npos))
    return std::nullopt;
  if (version != 0) out.flags &= sampled_flag;
  if (is_tracestate(tracestate)) out.state = tracestate;
  return out;
}

bool is_tracestate(std::string_view text) {
  if (text.size() > most_state_bytes) return false;
  std::set<std::string_view> keys;
  for (std::size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find(',', begin);
    const auto member = without_blanks(text.substr(begin, end - begin));
    if (member.empty()) continue; // allowed, for those who join lists
    const auto equals = member.find('=');
    if (equals == std::string_view::npos || !is_state_key(member.substr(0, equals)) ||
        !is_state_value(member.substr(equals + 1)) || !keys.insert(member.substr(0, equals)).second)
      return false;
  }
  return !keys.empty() && keys.size() <= most_state_members;
}

std::string scope::traceparent() const {
  return "00-" + hex(trace) + "-" + hex(self) + "-" + hex(&flags, 1);
}

span_id make_span_id(const random_source& random) {
  return draw<8>(random);
}

bool is_among(double share, const trace_id& id) {
  constexpr double all = 72057594037927936.0; // 2^56: the last seven bytes are random
  std::uint64_t drawn = 0;
  for (std::size_t i = 9; i < id.size(); ++i) drawn = drawn << 8 | id[i];
  return drawn <
         static_cast<std::uint64_t>(std::ceil(share * all)); // as integers: doubles cannot tell the largest apart
}

std::shared_ptr<const scope> tracer::begin(std::string_view traceparent, std::string_view tracestate) const {
  auto out = std::make_shared<scope>();
  if (auto from = read_caller(traceparent, tracestate)) {
    out->trace = from->trace;
    out->parent = from->span;
    out->parent_is_remote = true;
    out->flags = from->flags & (sampled_flag | random_flag);
    if (!from->state.empty()) out->state = std::make_shared<const std::string>(std::move(from->state));
  } else {
    out->trace = draw<16>(random_);
    out->flags = is_among(sample_, out->trace) ? sampled_flag | random_flag : random_flag;
  }
  out->self = make_span_id(random_);
  if ((out->flags & sampled_flag) != 0) out->to = to_;
  return out;
}

std::shared_ptr<const scope> inside(const scope& whole, const random_source& random) {
  auto out = std::make_shared<scope>(whole);
  out->parent = whole.self;
  out->parent_is_remote = false;
  out->self = make_span_id(random);
  return out;
}

} // namespace parley::protocol::trace
