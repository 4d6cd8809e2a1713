#include "protocol/codec/duplex_config_codec.hpp"

#include <array>
#include <utility>

namespace parley::protocol {
namespace {

constexpr int unit_ms = 1000;
constexpr int input_rate = 16'000;

/// A number that a client may state, but only with this value.
void fixed(field_reader& in, const field& from, int value) {
  int ignored = 0;
  in.integer(from, value, value, ignored);
}

template<class T, std::size_t N>
void choice(field_reader& in, const field& from, const std::array<std::pair<std::string_view, T>, N>& words,
            auto& into) {
  std::string scratch;
  auto text = in.text(from, scratch);
  if (!text) return;
  std::string known;
  for (auto& [word, meaning] : words) {
    if (*text == word) {
      into = meaning;
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  in.fail(error_code::invalid_payload, from.path, "none of " + known);
}

constexpr std::array<std::pair<std::string_view, bool>, 2> decode_modes{{{"sampling", false}, {"greedy", true}}};
constexpr std::array<std::pair<std::string_view, window_mode>, 3> window_modes{
    {{"off", window_mode::off}, {"basic", window_mode::basic}, {"context", window_mode::context}}};

} // namespace

void read_duplex_config(field_reader& in, const field& config, init_event& into) {
  auto& out = into.config;
  constexpr auto any = field_reader::any;
  constexpr auto unlimited = field_reader::unlimited;
  auto at = [&](std::string_view name) { return field_reader::find(config, {name}); };

  in.number(at("length_penalty"), 0.1, 5.0, out.sampling.length_penalty);
  in.integer(at("force_listen_count"), 0, 100, out.force_listen_count);
  in.integer(at("max_new_speak_tokens_per_chunk"), 1, 100, out.max_new_speak_tokens_per_chunk);
  in.number(at("temperature"), 0, 2, out.sampling.temperature);
  in.integer(at("top_k"), 0, any, out.sampling.top_k);
  in.number(at("top_p"), 0, 1, out.sampling.top_p);
  choice(in, at("decode_mode"), decode_modes, out.sampling.greedy);
  in.number(at("text_repetition_penalty"), 1, unlimited, out.sampling.repetition_penalty);
  in.integer(at("text_repetition_window_size"), 1, any, out.sampling.repetition_window);
  in.number(at("listen_prob_scale"), 0, unlimited, out.listen_prob_scale);
  in.integer(at("listen_top_k"), 0, any, out.listen_top_k);
  in.number(at("tts_temperature"), 0, 2, out.tts_temperature);
  in.boolean(at("generate_audio"), out.generate_audio);
  choice(in, at("sliding_window_mode"), window_modes, out.window);
  in.integer(at("basic_window_high_tokens"), 1, any, out.window_high_tokens);
  in.integer(at("basic_window_low_tokens"), 1, any, out.window_low_tokens);
  if (out.window_high_tokens && out.window_low_tokens && *out.window_low_tokens > *out.window_high_tokens)
    in.fail(error_code::invalid_payload, at("basic_window_low_tokens").path, "above basic_window_high_tokens");
  in.seed(at("seed"), into.seed);
  in.boolean(at("unit_responses"), into.unit_responses);
  in.boolean(at("listen_at_turn_end"), into.listen_at_turn_end);
  in.boolean(at("transcribe_input"), into.transcribe_input);
  fixed(in, at("chunk_ms"), unit_ms);
  fixed(in, at("sample_rate"), input_rate);
}

} // namespace parley::protocol
