#include "actors/bytes/unit_bounds.hpp"

#include "base/utf8.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ranges>
#include <string>
#include <variant>
#include <vector>

namespace parley::actors {

namespace {

constexpr int most_count = 1 << 24;
constexpr double longest_ms = 1e9;
constexpr std::size_t most_token_bytes = 4096; ///< of a token's text
constexpr std::size_t most_history = 1 << 16;  ///< messages and items of a chat

bool within(std::int64_t number, std::int64_t most) {
  return number >= 0 && number <= most;
}

bool is_time(double ms) {
  return ms >= 0 && ms <= longest_ms; // false if it is no number
}

bool is_text(const std::string& text, std::size_t most = most_text_bytes) {
  return text.size() <= most && base::utf8::valid(text);
}

bool is_sound(const conversation::pcm& samples, std::size_t most = most_samples) {
  if (!samples) return true;
  return samples->size() <= most && std::ranges::all_of(*samples, [](float x) { return std::isfinite(x); });
}

bool are_tokens(const std::vector<std::int64_t>& ids) {
  return std::ranges::all_of(ids, [](std::int64_t id) { return id >= 0 && id < most_token_ids; });
}

bool is_usage(const conversation::usage& of) {
  const std::array counts{of.input_text, of.input_audio, of.input_vision, of.output_text, of.output_audio};
  return std::ranges::all_of(counts, [](std::int64_t count) { return within(count, most_tokens); });
}

bool are_metrics(const conversation::step_metrics& of) {
  const std::array times{of.prefill_ms, of.generate_ms, of.llm_ms, of.tts_ms, of.token2wav_ms};
  const std::array counts{of.kv_cache_length, of.n_tokens,      of.n_tts_tokens,
                          of.vision_slices,   of.vision_tokens, of.window_events};
  return std::ranges::all_of(times, is_time) &&
         std::ranges::all_of(counts, [](int count) { return within(count, most_count); });
}

bool is_chance(const conversation::token_chance& of) {
  return of.bytes.size() <= most_token_bytes && !std::isnan(of.logprob) && of.logprob <= 1;
}

bool are_scores(const std::vector<conversation::token_score>& scores) {
  return std::ranges::all_of(scores, [](const conversation::token_score& of) {
    return is_chance(of.chosen) && of.likeliest.size() <= most_likeliest &&
           std::ranges::all_of(of.likeliest, is_chance);
  });
}

bool is_call(const conversation::tool_call& of) {
  return is_text(of.id, most_words_bytes) && is_text(of.name) && is_text(of.arguments);
}

bool is_piece(const conversation::call_piece& of) {
  return of.number < most_calls && is_text(of.name) && is_text(of.arguments);
}

template<class Call, class Check>
bool are_calls(const std::vector<Call>& calls, Check each) {
  return calls.size() <= most_calls && std::ranges::all_of(calls, each);
}

bool are_choices(const std::shared_ptr<const conversation::unit_choices>& of) {
  return !of || (are_tokens(of->sampled) && are_tokens(of->remembered) && are_tokens(of->spoken) &&
                 within(of->owed_text, most_tokens));
}

bool are_choices(const std::shared_ptr<const conversation::turn_choices>& of) {
  return !of || (are_tokens(of->sampled) && are_tokens(of->spoken) && of->text_bytes <= most_text_bytes &&
                 of->samples <= most_samples && of->scores <= std::size_t{most_tokens} &&
                 of->call_pieces <= std::size_t{most_tokens});
}

struct event_check {
  bool operator()(const conversation::opened& of) const {
    return within(of.prompt_tokens, most_tokens) && is_usage(of.prompt_usage);
  }
  bool operator()(const conversation::step_output& of) const {
    return is_text(of.text) && is_sound(of.audio) && is_usage(of.used) && are_metrics(of.metrics) &&
           are_choices(of.choices);
  }
  bool operator()(const conversation::chat_delta& of) const {
    return is_text(of.text) && is_sound(of.audio) && are_tokens(of.sampled) && are_tokens(of.spoken) &&
           are_scores(of.scores) && are_calls(of.calls, is_piece);
  }
  bool operator()(const conversation::chat_done& of) const {
    return is_text(of.text) && is_sound(of.audio) && is_usage(of.used) && are_metrics(of.metrics) &&
           are_calls(of.calls, is_call) && are_scores(of.scores);
  }
  bool operator()(const conversation::failed& of) const { return is_text(of.message, most_words_bytes); }
  bool operator()(const conversation::replayed&) const { return true; }
  bool operator()(const conversation::closed&) const { return true; }
};

bool is_option(const std::optional<int>& of) {
  return !of || *of >= 0;
}

bool is_option(const std::optional<double>& of) {
  return !of || std::isfinite(*of);
}

bool are_options(const conversation::duplex_options& of) {
  const auto& how = of.sampling;
  const std::array numbers{how.temperature,      how.top_p,         how.repetition_penalty, how.length_penalty,
                           of.listen_prob_scale, of.tts_temperature};
  return std::ranges::all_of(numbers, [](double number) { return std::isfinite(number) && number >= 0; }) &&
         how.top_k >= 0 && how.repetition_window >= 0 && within(of.force_listen_count, most_count) &&
         within(of.max_new_speak_tokens_per_chunk, most_count) && is_option(of.listen_top_k) &&
         is_option(of.window_high_tokens) && is_option(of.window_low_tokens);
}

bool are_files(const std::vector<conversation::image_file>& files, std::size_t most) {
  return files.size() <= most && std::ranges::all_of(files, [](const auto& file) { return file != nullptr; });
}

struct item_check {
  bool operator()(const conversation::text_item& of) const { return base::utf8::valid(of.text); }
  bool operator()(const conversation::audio_item& of) const { return is_sound(of.samples); }
  bool operator()(const conversation::image_item& of) const { return of.file != nullptr; }
  bool operator()(const conversation::video_item& of) const {
    return are_files(of.frames, most_history) && is_sound(of.samples) && within(of.stack_frames, most_count);
  }
};

bool is_message(const conversation::message& of) {
  return of.content.size() <= most_history &&
         std::ranges::all_of(of.content, [](const auto& item) { return std::visit(item_check{}, item); });
}

/// Read before one second; the gateway lets clients type no more (`protocol::max_waiting_context`).
bool is_context(const std::vector<conversation::text_message>& messages) {
  std::size_t bytes = 0;
  for (const auto& each : messages) {
    if (!base::utf8::valid(each.text)) return false;
    bytes += each.text.size();
  }
  return messages.size() <= most_history && bytes <= protocol::max_waiting_context;
}

struct command_check {
  bool operator()(const conversation::open_duplex& of) const {
    return are_options(of.options) && is_sound(of.voice) && is_sound(of.tts_voice) &&
           base::utf8::valid(of.system_prompt);
  }
  bool operator()(const conversation::open_chat&) const { return true; }
  bool operator()(const conversation::submit_unit& of) const {
    return is_sound(of.samples, protocol::unit_samples) && are_files(of.frames, most_frames) &&
           within(of.max_slice_nums, most_count) && are_choices(of.replay) && is_context(of.context);
  }
  bool operator()(const conversation::submit_turn& of) const {
    return of.messages.size() <= most_history && std::ranges::all_of(of.messages, is_message) &&
           within(of.max_new_tokens, most_count) && std::isfinite(of.length_penalty) && is_option(of.temperature) &&
           is_option(of.top_k) && is_option(of.top_p) && is_option(of.max_slice_nums) && is_option(of.scored) &&
           (!of.scored || std::size_t(*of.scored) <= most_likeliest) && is_sound(of.tts_voice) &&
           are_choices(of.replay);
  }
  bool operator()(const conversation::cut&) const { return true; }
  bool operator()(const conversation::cancel_turn&) const { return true; }
  bool operator()(const conversation::close_session&) const { return true; }
};

} // namespace

bool plausible(const conversation::event& event) {
  return std::visit(event_check{}, event);
}

bool plausible(const conversation::command& order) {
  return std::visit(command_check{}, order);
}

bool plausible(const inference::engine_info& info) {
  return is_text(info.model, most_words_bytes) && is_text(info.fingerprint, most_words_bytes) &&
         is_text(info.device, most_words_bytes) && within(info.slots, most_slots) &&
         within(info.context_tokens, most_tokens) && within(info.unit.rows, most_slots) &&
         within(info.unit.rows_per_picture, most_slots);
}

bool plausible(const worker_capacity& load) {
  const auto& of = load.engine;
  return within(of.kv_pages, most_pages) && within(of.kv_pages_free, of.kv_pages) && within(of.slots, most_slots) &&
         is_time(load.busy_s) && load.prompts.size() <= inference::kept_prompts;
}

} // namespace parley::actors
