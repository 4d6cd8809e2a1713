#include "protocol/codec/duplex_config_codec.hpp"

#include "protocol/codec/number_visitors.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
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

template<class Options, class Visitor>
void go_through_sampling(Options& of, Visitor& to) {
  to.number("temperature", 0, 2, of.sampling.temperature);
  to.integer("top_k", 0, field_reader::any, of.sampling.top_k);
  to.number("top_p", 0, 1, of.sampling.top_p);
  to.choice("decode_mode", decode_modes, of.sampling.greedy);
}

/// Goes through the options of a duplex session in the order in which they are read: their names, bounds and values.
template<class Options, class Visitor>
void go_through(Options& of, Visitor& to) {
  constexpr auto any = field_reader::any;
  constexpr auto unlimited = field_reader::unlimited;
  to.number("length_penalty", 0.1, 5.0, of.sampling.length_penalty);
  to.integer("force_listen_count", 0, 100, of.force_listen_count);
  to.integer("max_new_speak_tokens_per_chunk", 1, 100, of.max_new_speak_tokens_per_chunk);
  go_through_sampling(of, to);
  to.number("text_repetition_penalty", 1, unlimited, of.sampling.repetition_penalty);
  to.integer("text_repetition_window_size", 1, any, of.sampling.repetition_window);
  to.number("listen_prob_scale", 0, unlimited, of.listen_prob_scale);
  to.integer("listen_top_k", 0, any, of.listen_top_k);
  to.number("tts_temperature", 0, 2, of.tts_temperature);
  to.boolean("generate_audio", of.generate_audio);
  to.choice("sliding_window_mode", window_modes, of.window);
  to.integer("basic_window_high_tokens", 1, any, of.window_high_tokens);
  to.integer("basic_window_low_tokens", 1, any, of.window_low_tokens);
  if (of.window_high_tokens && of.window_low_tokens && *of.window_low_tokens > *of.window_high_tokens)
    to.in.fail(error_code::invalid_payload, to.path("basic_window_low_tokens"), "above basic_window_high_tokens");
}

struct config_reader : number_reader {
  void boolean(std::string_view name, bool& into) { in.boolean(at(name), into); }
  void choice(std::string_view name, const auto& words, auto& into) { protocol::choice(in, at(name), words, into); }
};

struct config_checker : number_checker {
  void boolean(std::string_view, bool) {}
  void choice(std::string_view, const auto&, const auto&) {}
};

} // namespace

void read_generation(field_reader& in, const field& config, init_event& into) {
  const auto generation = in.object(field_reader::find(config, {"generation"}));
  config_reader read{{in, generation}};
  go_through_sampling(into.config, read);
}

void read_duplex_config(field_reader& in, const field& config, init_event& into) {
  config_reader read{{in, config}};
  go_through(into.config, read);
  into.wants_audio = read.at("generate_audio").at.given() && into.config.generate_audio;
  in.seed(read.at("seed"), into.seed);
  in.boolean(read.at("unit_responses"), into.unit_responses);
  in.boolean(read.at("listen_at_turn_end"), into.listen_at_turn_end);
  in.boolean(read.at("transcribe_input"), into.transcribe_input);
  fixed(in, read.at("chunk_ms"), unit_ms);
  fixed(in, read.at("sample_rate"), input_rate);
}

void check_duplex_config(field_reader& in, const conversation::duplex_options& config) {
  config_checker check{{in, "payload.config."}};
  go_through(config, check);
}

} // namespace parley::protocol
