#include "protocol/call/opus_stream.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <opus/opus.h>
#include <stdexcept>
#include <string>

namespace parley::protocol::call {
namespace {

constexpr int bits_per_second = 32'000; ///< 4 KB a second: wideband speech, transparent to listeners
constexpr int expected_loss = 10;       ///< percent; makes the encoder put copies in
constexpr int complexity = 5;           ///< of 10
constexpr std::uint32_t time_per_sample = rtp_rate / heard_rate;
constexpr std::uint32_t concealed_at_once = rtp_rate / 50; ///< 20 ms
constexpr std::uint32_t shortest = rtp_rate / 400;         ///< 2.5 ms: what libopus conceals is a multiple of it

const unsigned char* bytes_of(const std::byte* data) {
  return reinterpret_cast<const unsigned char*>(data);
}

} // namespace

std::optional<std::uint32_t> opus_duration(std::span<const std::byte> payload) {
  const auto samples =
      opus_packet_get_nb_samples(bytes_of(payload.data()), static_cast<opus_int32>(payload.size()), rtp_rate);
  if (payload.empty() || samples <= 0) return std::nullopt;
  return static_cast<std::uint32_t>(samples);
}

void opus_decoder::deleter::operator()(OpusDecoder* held) const {
  opus_decoder_destroy(held);
}

opus_decoder::opus_decoder() {
  int why = 0;
  decoder_.reset(opus_decoder_create(heard_rate, 1, &why));
  if (!decoder_) throw std::runtime_error(std::string("libopus: ") + opus_strerror(why));
}

void opus_decoder::decode(const jitter_buffer::piece& from, std::vector<float>& out) {
  const auto duration = opus_duration(from.payload);
  auto lost = from.lost / shortest * shortest;
  const auto copied = from.next_of_lost && duration ? std::min(lost, *duration) : 0;
  for (lost -= copied; lost > 0; lost -= std::min(lost, concealed_at_once))
    append(nullptr, 0, std::min(lost, concealed_at_once), false, out);
  if (copied > 0) append(from.payload.data(), from.payload.size(), copied, true, out);
  if (duration) append(from.payload.data(), from.payload.size(), *duration, false, out);
}

void opus_decoder::append(const std::byte* data, std::size_t bytes, std::uint32_t time, bool copy,
                          std::vector<float>& out) {
  const auto before = out.size();
  const auto samples = static_cast<int>(time / time_per_sample);
  out.resize(before + static_cast<std::size_t>(samples));
  auto got = opus_decode_float(decoder_.get(), bytes_of(data), static_cast<opus_int32>(bytes), &out[before], samples,
                               copy ? 1 : 0);
  if (got < 0 && data != nullptr) got = opus_decode_float(decoder_.get(), nullptr, 0, &out[before], samples, 0);
  out.resize(before + static_cast<std::size_t>(std::max(got, 0)));
}

void opus_encoder::deleter::operator()(OpusEncoder* held) const {
  opus_encoder_destroy(held);
}

opus_encoder::opus_encoder() : packet_(most_rtp_payload) {
  int why = 0;
  encoder_.reset(opus_encoder_create(spoken_rate, 1, OPUS_APPLICATION_VOIP, &why));
  if (!encoder_) throw std::runtime_error(std::string("libopus: ") + opus_strerror(why));
  opus_encoder_ctl(encoder_.get(), OPUS_SET_BITRATE(bits_per_second));
  opus_encoder_ctl(encoder_.get(), OPUS_SET_INBAND_FEC(1));
  opus_encoder_ctl(encoder_.get(), OPUS_SET_PACKET_LOSS_PERC(expected_loss));
  opus_encoder_ctl(encoder_.get(), OPUS_SET_COMPLEXITY(complexity));
}

std::span<const std::byte> opus_encoder::encode(std::span<const float> samples) {
  PARLEY_ASSERT(samples.size() == frame_samples, "20 ms");
  const auto bytes =
      opus_encode_float(encoder_.get(), samples.data(), static_cast<int>(samples.size()),
                        reinterpret_cast<unsigned char*>(packet_.data()), static_cast<opus_int32>(packet_.size()));
  return std::span(packet_).first(static_cast<std::size_t>(std::max(bytes, 0)));
}

} // namespace parley::protocol::call
