#include "protocol/media/sound_file.hpp"

#include "base/printable.hpp"
#include "protocol/media/resampler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mpg123.h>
#include <mutex>
#include <ogg/ogg.h>
#include <optional>
#include <sndfile.h>
#include <span>
#include <stdexcept>
#include <utility>
#include <vorbis/codec.h>

namespace parley::protocol {
namespace {

using base::file_kind;

/// The bytes of a file, as libsndfile reads them. Nothing is written, and nothing throws.
struct source {
  std::string_view bytes;
  sf_count_t at = 0;

  static sf_count_t length(void* user) noexcept {
    return static_cast<sf_count_t>(static_cast<source*>(user)->bytes.size());
  }
  static sf_count_t tell(void* user) noexcept { return static_cast<source*>(user)->at; }
  static sf_count_t write(const void*, sf_count_t, void*) noexcept { return 0; }

  static sf_count_t seek(sf_count_t by, int from, void* user) noexcept {
    auto& self = *static_cast<source*>(user);
    const auto size = length(user);
    const sf_count_t origin = from == SEEK_SET ? 0 : from == SEEK_CUR ? self.at : size;
    // Headers of hostile files ask for any place.
    if (by < -origin || by > size - origin) return -1;
    return self.at = origin + by;
  }

  static sf_count_t read(void* to, sf_count_t count, void* user) noexcept {
    auto& self = *static_cast<source*>(user);
    const auto got = std::clamp<sf_count_t>(count, 0, length(user) - self.at);
    std::memcpy(to, self.bytes.data() + self.at, static_cast<std::size_t>(got));
    self.at += got;
    return got;
  }
};

struct closer {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using open_file = std::unique_ptr<SNDFILE, closer>;

struct kind_of_container {
  file_kind kind;
  int container; ///< of libsndfile
};
constexpr std::array containers{
    kind_of_container{file_kind::rf64, SF_FORMAT_RF64}, kind_of_container{file_kind::w64, SF_FORMAT_W64},
    kind_of_container{file_kind::aiff, SF_FORMAT_AIFF}, kind_of_container{file_kind::caf, SF_FORMAT_CAF},
    kind_of_container{file_kind::au, SF_FORMAT_AU},     kind_of_container{file_kind::flac, SF_FORMAT_FLAC},
    kind_of_container{file_kind::ogg, SF_FORMAT_OGG},
};

std::optional<int> container_of(file_kind kind) {
  for (const auto& each : containers)
    if (each.kind == kind) return each.container;
  return std::nullopt;
}

/// Opening sets variables that all of libsndfile has in common.
open_file open(source& from, SF_INFO& info, std::string& problem) {
  static std::mutex one_at_a_time;
  SF_VIRTUAL_IO io{source::length, source::seek, source::read, source::write, source::tell};
  const std::lock_guard lock(one_at_a_time);
  open_file file(sf_open_virtual(&io, SFM_READ, &info, &from));
  if (!file) problem = base::printable(sf_strerror(nullptr));
  return file;
}

/// Codings whose decoders many have looked at; containers may hold others, such as ADPCM and GSM.
bool is_read(int format) {
  switch (format & SF_FORMAT_SUBMASK) {
  case SF_FORMAT_PCM_S8:
  case SF_FORMAT_PCM_U8:
  case SF_FORMAT_PCM_16:
  case SF_FORMAT_PCM_24:
  case SF_FORMAT_PCM_32:
  case SF_FORMAT_FLOAT:
  case SF_FORMAT_DOUBLE:
  case SF_FORMAT_ULAW:
  case SF_FORMAT_ALAW:
  case SF_FORMAT_VORBIS:
  case SF_FORMAT_OPUS: return true;
  default: return false;
  }
}

/// What is decoded so far: downmixed and resampled as it comes, and no more of it than is allowed. Errors continue the name
/// of a file.
class collector {
public:
  collector(int rate, int channels, const wav_options& wanted)
      : rate_(rate), channels_(static_cast<std::size_t>(channels)), wanted_(wanted), rates_(rate, wanted.rate) {}

  /// Why nothing of that rate and so many channels is decoded; empty if it is.
  static std::string refusal_of(int rate, int channels) {
    if (channels < 1 || rate < 1'000) return " without channels, or of less than 1000 Hz";
    if (std::int64_t{channels} * rate <= most_values_a_second) return {};
    return " of " + std::to_string(channels) + " channels at " + std::to_string(rate) + " Hz; at most " +
           std::to_string(most_values_a_second) + " samples a second are decoded";
  }

  /// Whole frames, which it may change. Returns why it takes no more; empty if it does.
  std::string add(std::span<float> values) {
    const auto count = values.size() / channels_;
    for (std::size_t i = 0; i < count; ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < channels_; ++c) sum += values[i * channels_ + c];
      const auto mean = static_cast<float>(sum / static_cast<double>(channels_));
      if (!std::isfinite(mean)) return ", whose sample " + std::to_string(frames_ + i) + " is not finite";
      values[i] = std::clamp(mean, -1.0f, 1.0f);
    }
    frames_ += count;
    if (seconds() > wanted_.max_seconds) return outside();
    rates_.feed(values.first(count), out_);
    return {};
  }

  tl::expected<std::vector<float>, std::string> finish() {
    if (frames_ == 0 || seconds() < wanted_.min_seconds) return tl::unexpected(outside());
    rates_.finish(out_);
    for (auto& x : out_) x = std::clamp(x, -1.0f, 1.0f);
    return std::move(out_);
  }

  bool is_of(int rate, int channels) const { return rate == rate_ && static_cast<std::size_t>(channels) == channels_; }

private:
  double seconds() const { return static_cast<double>(frames_) / rate_; }
  std::string outside() const { return " with " + outside_seconds(seconds(), wanted_); }

  const int rate_;
  const std::size_t channels_;
  const wav_options wanted_;
  resampler rates_;
  std::size_t frames_ = 0;
  std::vector<float> out_;
};

constexpr std::size_t block_values = 16'384;

/// What is wrong with a file that libsndfile could open, before anything of it is decoded.
std::string fault_of(const SF_INFO& info, int container, const wav_options& wanted) {
  if ((info.format & SF_FORMAT_TYPEMASK) != container) return " that holds a file of another kind";
  if (!is_read(info.format)) return " in a coding that is not read";
  if (auto refused = collector::refusal_of(info.samplerate, info.channels); !refused.empty()) return refused;
  const auto claimed = static_cast<double>(info.frames) / info.samplerate;
  if (info.frames != SF_COUNT_MAX && claimed > wanted.max_seconds) return " with " + outside_seconds(claimed, wanted);
  return {};
}

/// The headers of Vorbis in an Ogg file, read before libsndfile does: it keeps what it read of broken ones for ever.
class vorbis_headers {
public:
  vorbis_headers() {
    ogg_sync_init(&sync_);
    vorbis_info_init(&info_);
    vorbis_comment_init(&comment_);
  }
  ~vorbis_headers() {
    if (began_) ogg_stream_clear(&stream_);
    vorbis_comment_clear(&comment_);
    vorbis_info_clear(&info_);
    ogg_sync_clear(&sync_);
  }
  vorbis_headers(const vorbis_headers&) = delete;
  vorbis_headers& operator=(const vorbis_headers&) = delete;

  bool are_good(std::string_view file) {
    constexpr std::size_t most_bytes = 1u << 20, piece_bytes = 4096;
    for (file = file.substr(0, most_bytes); !file.empty();) {
      const auto piece = file.substr(0, piece_bytes);
      file.remove_prefix(piece.size());
      std::memcpy(ogg_sync_buffer(&sync_, static_cast<long>(piece.size())), piece.data(), piece.size());
      ogg_sync_wrote(&sync_, static_cast<long>(piece.size()));
      ogg_page page{};
      for (int found = 0; (found = ogg_sync_pageout(&sync_, &page)) != 0;)
        if (found < 0 || !take(page))
          return false;
        else if (count_ == 3)
          return true;
    }
    return false;
  }

private:
  bool take(ogg_page& page) {
    if (!std::exchange(began_, true)) ogg_stream_init(&stream_, ogg_page_serialno(&page));
    if (ogg_stream_pagein(&stream_, &page) != 0) return false; // of another stream too
    ogg_packet packet{};
    for (int found = 0; count_ < 3 && (found = ogg_stream_packetout(&stream_, &packet)) != 0; ++count_)
      if (found < 0 || vorbis_synthesis_headerin(&info_, &comment_, &packet) != 0) return false;
    return true;
  }

  ogg_sync_state sync_{};
  ogg_stream_state stream_{};
  vorbis_info info_{};
  vorbis_comment comment_{};
  bool began_ = false;
  int count_ = 0;
};

/// Whether an Ogg file begins with a stream of a coding that is read, whose headers are good.
bool begins_well(std::string_view ogg) {
  constexpr std::size_t segments_at = 26;
  if (ogg.size() <= segments_at) return false;
  const auto segments = static_cast<unsigned char>(ogg[segments_at]);
  const auto packet = ogg.substr(std::min<std::size_t>(segments_at + 1 + segments, ogg.size()));
  if (packet.starts_with("\x01vorbis")) return vorbis_headers().are_good(ogg);
  return packet.starts_with("OpusHead") || packet.starts_with("\x7F"
                                                              "FLAC");
}

tl::expected<std::vector<float>, std::string> read_by_libsndfile(int container, std::string_view bytes,
                                                                 const wav_options& wanted) {
  if (container == SF_FORMAT_OGG && !begins_well(bytes))
    return tl::unexpected(std::string(" that cannot be decoded: it begins with no headers of Vorbis, Opus or FLAC"));
  source from{bytes};
  SF_INFO info{};
  std::string problem;
  const auto file = open(from, info, problem);
  if (!file) return tl::unexpected(" that cannot be decoded: " + problem);
  if (auto fault = fault_of(info, container, wanted); !fault.empty()) return tl::unexpected(std::move(fault));
  const auto channels = static_cast<std::size_t>(info.channels);
  collector all(info.samplerate, info.channels, wanted);
  std::vector<float> block(block_values / channels * channels);
  for (;;) {
    const auto got = sf_readf_float(file.get(), block.data(), static_cast<sf_count_t>(block.size() / channels));
    if (got <= 0) return all.finish();
    if (auto why = all.add(std::span(block).first(static_cast<std::size_t>(got) * channels)); !why.empty())
      return tl::unexpected(std::move(why));
  }
}

struct mpg123_closer {
  void operator()(mpg123_handle* decoder) const { mpg123_delete(decoder); }
};

/// Not by libsndfile, whose libmpg123 writes to standard error what it thinks of a file.
tl::expected<std::vector<float>, std::string> read_mp3(std::string_view bytes, const wav_options& wanted) {
  bytes = base::from_first_frame(bytes); // it would look for frames in anything
  constexpr std::size_t piece_bytes = 16'384;
  const std::unique_ptr<mpg123_handle, mpg123_closer> decoder(mpg123_new(nullptr, nullptr));
  if (!decoder || mpg123_param(decoder.get(), MPG123_ADD_FLAGS, MPG123_QUIET | MPG123_FORCE_FLOAT, 0) != MPG123_OK ||
      mpg123_open_feed(decoder.get()) != MPG123_OK)
    throw std::runtime_error("libmpg123 makes no decoder");
  std::optional<collector> all;
  std::vector<float> block(block_values);
  std::string_view piece;
  for (;;) {
    std::size_t got = 0;
    const int status =
        mpg123_decode(decoder.get(), reinterpret_cast<const unsigned char*>(piece.data()), piece.size(),
                      reinterpret_cast<unsigned char*>(block.data()), block.size() * sizeof(float), &got);
    piece = {};
    mpg123_frameinfo frame{};
    if (mpg123_info(decoder.get(), &frame) == MPG123_OK && frame.layer != 3)
      return tl::unexpected(std::string(" of layer I or II")); // whose decoder is not silent
    if (got > 0 && all) {
      if (auto why = all->add(std::span(block).first(got / sizeof(float))); !why.empty()) return tl::unexpected(why);
    }
    if (status == MPG123_NEED_MORE) {
      if (bytes.empty()) break;
      piece = bytes.substr(0, piece_bytes);
      bytes.remove_prefix(piece.size());
    } else if (status == MPG123_NEW_FORMAT) {
      long rate = 0;
      int channels = 0;
      mpg123_getformat(decoder.get(), &rate, &channels, nullptr);
      if (all && !all->is_of(static_cast<int>(rate), channels))
        return tl::unexpected(std::string(" whose rate or channels change"));
      if (auto why = collector::refusal_of(static_cast<int>(rate), channels); !why.empty()) return tl::unexpected(why);
      if (!all) all.emplace(static_cast<int>(rate), channels, wanted);
    } else if (status != MPG123_OK) {
      break; // what was decoded is used, as of any file that breaks off
    }
  }
  if (!all) return tl::unexpected(std::string(" that cannot be decoded: there is no frame of sound"));
  return all->finish();
}

/// The first characters of a JSON string that are no white space, without escapes. Nothing if an escape stands for any
/// character.
std::optional<std::string> begin_of(std::string_view json) {
  constexpr std::size_t most = 6;
  std::string out;
  for (std::size_t at = 0; at < json.size() && out.size() < most; ++at) {
    const char c = json[at];
    if (c == ' ') continue;
    if (c != '\\') {
      out += c;
      continue;
    }
    const char next = ++at < json.size() ? json[at] : 'u';
    if (next == 'u') return std::nullopt;
    if (next != 'n' && next != 'r' && next != 't') out += next;
  }
  return out;
}

/// Whether a JSON string may be such a file in base64.
bool may_be_coded(std::string_view json) {
  if (json.starts_with("data:")) {
    constexpr std::size_t longest_type = 260;
    const auto comma = json.substr(0, longest_type).find(',');
    if (json.substr(0, std::min(comma, longest_type)).find('\\') != std::string_view::npos) return true;
    if (comma != std::string_view::npos) json.remove_prefix(comma + 1);
  }
  const auto begin = begin_of(json);
  if (!begin || begin->starts_with("//") || begin->starts_with("/+")) return true; // or eleven bits that are set: MP3
  constexpr std::array<std::string_view, 3> marks{"ZkxhQ", "T2dnU", "SUQz"};       // fLaC, OggS, ID3
  return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) { return begin->starts_with(mark); });
}

} // namespace

bool is_readable_sound(file_kind kind) {
  return kind == file_kind::wav || kind == file_kind::mp3 || container_of(kind);
}

tl::expected<std::vector<float>, std::string> read_sound(std::string_view bytes, const wav_options& wanted) {
  const auto kind = base::kind_of(bytes);
  if (kind == file_kind::wav || kind == file_kind::unknown) return read_wav(bytes, wanted);
  const std::string name(base::name_of(kind));
  const auto container = container_of(kind);
  if (!container && kind != file_kind::mp3)
    return tl::unexpected(name + "; of sound, " + std::string(readable_sounds) + " are read");
  // Behind a tag libsndfile would look for any of its kinds.
  bytes = base::without_id3(bytes);
  auto samples = container ? read_by_libsndfile(*container, bytes, wanted) : read_mp3(bytes, wanted);
  if (!samples) return tl::unexpected(name + samples.error());
  return samples;
}

bool may_hold_coded_sound(std::string_view frame) {
  constexpr std::size_t least = 256; // what fits into fewer characters is decoded soon
  auto quote = frame.find('"');
  while (quote != std::string_view::npos) {
    const auto next = frame.find('"', quote + 1);
    const auto text = frame.substr(quote + 1, next == std::string_view::npos ? next : next - quote - 1);
    if (text.size() >= least && may_be_coded(text)) return true;
    quote = next;
  }
  return false;
}

} // namespace parley::protocol
