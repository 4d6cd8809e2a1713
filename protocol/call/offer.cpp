#include "protocol/call/offer.hpp"

#include "base/lower.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>

namespace parley::protocol::call {
namespace {

constexpr std::size_t most_lines = 600;
constexpr std::size_t longest_line = 4096;
constexpr std::size_t longest_mid = 32;

tl::unexpected<openai::fault> bad(std::string why) {
  return openai::refuse("invalid_offer", "Invalid SDP offer: " + std::move(why), "sdp");
}

std::string_view cut_line(std::string_view& rest) {
  const auto end = std::min(rest.find('\n'), rest.size());
  auto line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_printable(std::string_view line) {
  return std::all_of(line.begin(), line.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\t'; });
}

/// The payload type of `a=rtpmap:<type> opus/48000/2`.
std::optional<int> opus_type(std::string_view line) {
  constexpr std::string_view name = "a=rtpmap:";
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  int type = -1;
  const auto end = std::from_chars(line.data(), line.data() + line.size(), type).ptr;
  const auto coding = base::lower(line.substr(static_cast<std::size_t>(end - line.data())));
  if (coding != " opus/48000/2" || type < 0 || type > 127 || (type >= 64 && type <= 95)) return std::nullopt;
  return type;
}

} // namespace

openai::result<offer> read_offer(std::string_view sdp) {
  if (sdp.size() > most_offer_bytes) return bad("it is longer than 32 KiB.");
  if (!sdp.starts_with("v=0\r\n") && !sdp.starts_with("v=0\n")) return bad("it does not begin with v=0.");
  offer out;
  std::optional<int> type;
  std::size_t lines = 0;
  int sounds = 0, channels = 0;
  bool in_sound = false, has_user = false, has_fingerprint = false;
  while (!sdp.empty()) {
    const auto line = cut_line(sdp);
    if (++lines > most_lines || line.size() > longest_line) return bad("it has too many lines, or too long ones.");
    if (!is_printable(line)) return bad("it has control characters.");
    if (line.starts_with("m=")) {
      in_sound = line.starts_with("m=audio ");
      const bool is_channels = line.starts_with("m=application ");
      sounds += in_sound ? 1 : 0;
      channels += is_channels ? 1 : 0;
      if (!in_sound && !is_channels) return bad("a call has one audio track and a data channel, and no other media.");
    }
    if (in_sound && !type) type = opus_type(line);
    if (in_sound && line.starts_with("a=mid:")) out.mid = line.substr(6);
    has_user = has_user || line.starts_with("a=ice-ufrag:");
    has_fingerprint = has_fingerprint || line.starts_with("a=fingerprint:");
    if (line.starts_with("a=candidate") || line.starts_with("a=end-of-candidates")) continue;
    out.sdp.append(line).append("\r\n");
  }
  if (sounds != 1 || channels > 1) return bad("a call has one audio track, and at most one section of data channels.");
  if (!type) return bad("its audio is not Opus.");
  if (out.mid.empty() || out.mid.size() > longest_mid) return bad("its audio has no a=mid of up to 32 characters.");
  if (!has_user || !has_fingerprint) return bad("it has no ICE credentials or no DTLS fingerprint.");
  out.payload_type = *type;
  return out;
}

} // namespace parley::protocol::call
