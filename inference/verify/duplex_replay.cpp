#include "inference/verify/duplex_replay.hpp"

#include "inference/duplex/frame_rows.hpp"
#include "inference/llm/cache_slide.hpp"
#include "inference/verify/duplex_arguments.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

using nlohmann::json;

duplex::unit_decoder_options decoder_options(const json& capability) {
  duplex::unit_decoder_options o;
  o.force_listen_count = capability.value("force_listen_count", 0);
  o.explicit_mode = capability.value("ls_mode", "explicit") == "explicit";
  return o;
}

duplex::window_options window_options(const json& capability) {
  duplex::window_options o;
  auto mode = capability.value("sliding_window_mode", "off");
  o.mode = mode == "basic" ? window_mode::basic : mode == "context" ? window_mode::context : window_mode::off;
  o.high_tokens = capability.value("basic_window_high_tokens", o.high_tokens);
  o.low_tokens = capability.value("basic_window_low_tokens", o.low_tokens);
  o.max_units = capability.value("context_max_units", o.max_units);
  o.previous_max_tokens = capability.value("context_previous_max_tokens", o.previous_max_tokens);
  return o;
}

recorded_draws numbers_of(const json& decode_calls) {
  std::vector<double> numbers;
  for (const auto& call : decode_calls)
    for (const auto& draw : call.value("draws", json::array())) numbers.push_back(draw.at("u"));
  return recorded_draws(numbers);
}

} // namespace

duplex_replay::duplex_replay(const thinker& model, const json& capability)
    : cache(llm::kv_pool(model.config().llm, 1, 8192, model.llm().dtype(), model.llm().device()).open()),
      encoder(model.make_encoder_cache()), decoder(model.text(), quirks::literal(), decoder_options(capability)),
      window(model.text(), window_options(capability)), model_(model),
      ids_(llm::make_duplex_sampling_ids(model.text(), quirks::literal())),
      control_(duplex::control_tokens::of(model.text())) {}

at::Tensor duplex_replay::feed(const at::Tensor& rows) {
  llm::sequence_rows input{&cache, rows.size(0)};
  auto last = rows.size(0) - 1;
  return model_.llm().forward(rows, {&input, 1}, {&last, 1});
}

void duplex_replay::prepare(std::span<const token_id> prefix, std::span<const float> voice,
                            std::span<const token_id> suffix) {
  feed(model_.llm().embed(prefix));
  if (!voice.empty()) feed(model_.hear_clips({&voice, 1}));
  window.set_prompt(cache.length(), {suffix.begin(), suffix.end()});
  feed(model_.llm().embed(suffix));
}

bool duplex_replay::prefill(std::span<const float> samples, std::span<const vision::sliced_picture> frames) {
  pending_logits.reset();
  if (samples.empty() && frames.empty()) return false;
  window.begin_unit(cache.length());
  feed(model_.llm().embed({&control_.unit_begin, 1}));
  at::Tensor last;
  if (!frames.empty()) {
    auto seen = model_.sight().see(duplex::pieces_of(frames));
    last = feed(duplex::frame_rows(model_, frames, seen));
  }
  if (samples.empty()) {
    intake.skip();
  } else {
    if (!intake.append(samples, stream_)) return false;
    thinker::fresh_sound sound{&stream_, &encoder, intake.chunk(stream_), intake.drop_front()};
    auto rows = model_.hear({&sound, 1}).front();
    intake.consume(stream_.config);
    last = feed(rows);
  }
  pending_logits = model_.llm().logits(last).squeeze(0).cpu();
  return true;
}

void duplex_replay::generate(const json& arguments, const json& decode_calls) {
  decodes.clear();
  tts_ids.clear();
  tts_ends.clear();
  tts_hidden.clear();
  generated = pending_logits.defined();
  if (!generated) return;
  auto options = duplex_sampling_of(arguments, "decode_mode");
  auto chance = numbers_of(decode_calls);
  auto logits = pending_logits.clone();
  decoder.set_max_new_tokens(arguments.value("max_new_speak_tokens_per_chunk", 20));
  decoder.begin(arguments.value("force_listen_override", false));
  for (auto next = decoder.next(); next != duplex::wants::nothing; next = decoder.next()) {
    if (next == duplex::wants::draw) {
      decode_call call;
      llm::sampling_scratch scratch;
      scratch.records = &call.draws;
      std::span<float> row(logits.mutable_data_ptr<float>(), static_cast<std::size_t>(logits.numel()));
      call.decoded = llm::draw_duplex(row, ids_, options, quirks::literal(), history, chance, scratch);
      decoder.sampled(call.decoded);
      decodes.push_back(std::move(call));
      continue;
    }
    auto token = decoder.token();
    auto hidden = feed(model_.llm().embed({&token, 1}));
    logits = model_.llm().logits(hidden).squeeze(0).cpu();
    if (decoder.fed()) {
      tts_ids.push_back(token);
      tts_ends.push_back(token == control_.turn_eos);
      tts_hidden.push_back(hidden);
    }
  }
  if (chance.left() > 0) throw std::runtime_error("fewer draws than were recorded");
}

void duplex_replay::finalize() {
  std::vector<token_id> end;
  if (auto terminator = decoder.outcome().terminator) end.push_back(*terminator);
  end.push_back(control_.unit_end);
  feed(model_.llm().embed(end));
  window.end_unit(cache.length(), decoder.outcome());
  const auto slid = window.slide(cache.length());
  if (!slid) return;
  llm::cache_slide slide(cache, slid->keep, std::ssize(slid->insert), slid->moves, slid->length(),
                         model_.llm().positions());
  slide.advance(slide.left());
  if (slid->insert.empty()) return;
  feed(model_.llm().embed(slid->insert));
  cache.close_gap();
}

} // namespace parley::inference::verify
