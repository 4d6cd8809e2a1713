#include "client/load_material.hpp"

#include "client/codec/frames.hpp"
#include "protocol/media/sound_file.hpp"

namespace parley::client {
namespace {

constexpr std::size_t unit_samples = 16000;
constexpr double longest_recording = 600;

load_material::frame shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

std::size_t kind_of(protocol::mode mode, protocol::dialect spoken, bool force_listen) {
  return (mode == protocol::mode::video ? 4u : 0u) + (spoken == protocol::dialect::legacy ? 2u : 0u) +
         (force_listen ? 1u : 0u);
}

} // namespace

tl::expected<load_material, std::string> load_material::make(std::span<const std::string> wavs,
                                                             const std::string& picture,
                                                             std::span<const std::string> prompts, int max_new_tokens,
                                                             const load_habits& habits) {
  using protocol::dialect;
  using protocol::mode;
  load_material made;
  std::vector<float> spoken;
  for (const auto& bytes : wavs) {
    auto samples = protocol::read_sound(bytes, {.max_seconds = longest_recording});
    if (!samples) return tl::unexpected(samples.error());
    if (samples->empty()) return tl::unexpected(std::string("it holds no sound"));
    const auto units = (samples->size() + unit_samples - 1) / unit_samples;
    samples->resize(units * unit_samples);
    spoken.insert(spoken.end(), samples->begin(), samples->end());
    made.script_.recordings.push_back(units);
  }
  spoken.resize(spoken.size() + unit_samples); // one unit of silence
  for (const auto which : {mode::audio, mode::video})
    for (const auto words : {dialect::current, dialect::legacy})
      for (const bool force : {false, true}) {
        if (which == mode::video && picture.empty()) continue; // sent as audio
        auto& frames = made.units_[kind_of(which, words, force)];
        for (std::size_t at = 0; at < spoken.size(); at += unit_samples)
          frames.push_back(shared(encode_append(words, std::span(spoken).subspan(at, unit_samples), force,
                                                which == mode::video ? picture : std::string())));
      }
  init_request init{.spoken = dialect::current, .resume = habits.resume};
  if (habits.speak_tokens > 0) init.max_speak_tokens = habits.speak_tokens;
  made.inits_ = {shared(encode_init(init)), shared(encode_init({.spoken = dialect::legacy}))};
  for (const auto& prompt : prompts)
    made.questions_.push_back(
        shared(encode_chat({.prompt = prompt, .max_new_tokens = max_new_tokens, .tts = habits.tts})));
  made.close_ = shared(encode_close("user_stop"));
  return made;
}

const load_material::frame& load_material::unit(protocol::mode mode, protocol::dialect spoken, std::size_t unit,
                                                bool force_listen) const {
  const auto& frames = units_[kind_of(mode, spoken, force_listen)];
  return (frames.empty() ? units_[kind_of(protocol::mode::audio, spoken, force_listen)] : frames).at(unit);
}

} // namespace parley::client
