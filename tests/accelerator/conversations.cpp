#include "tests/accelerator/conversations.hpp"

#include "inference/formats/wav_file.hpp"
#include "tests/inference/picture_files.hpp"

#include <ATen/core/Tensor.h>
#include <catch2/catch.hpp>

#include <sstream>
#include <utility>

namespace parley::inference::testing {

namespace {

const std::vector<float>& question() {
  static const auto samples = [] {
    const auto first = speech::read_wav_file("tests/data/question.wav").samples[0].contiguous();
    return std::vector<float>(first.const_data_ptr<float>(), first.const_data_ptr<float>() + first.numel());
  }();
  return samples;
}

pcm part_of_question(std::size_t begin, std::size_t count) {
  std::vector<float> part(count);
  for (std::size_t i = 0; i < count; ++i) part[i] = question()[(begin + i) % question().size()];
  return std::make_shared<const std::vector<float>>(std::move(part));
}

image_file picture(int number) {
  return std::make_shared<const std::string>(jpeg_file(gradient(80 + 16 * number, 64)));
}

config::settings with_device(config::settings settings, c10::Device device) {
  settings.worker.model = "models/tiny-omni";
  settings.worker.device = device.str();
  settings.worker.max_sessions = 5;
  settings.worker.threads = 1;
  settings.engine.seed = 1;
  settings.engine.context_tokens = 1024;
  return settings;
}

void list(std::ostream& out, const char* name, const std::vector<std::int64_t>& numbers) {
  out << ' ' << name;
  for (const auto number : numbers) out << ' ' << number;
}

struct as_line {
  std::ostream& out;
  void operator()(const opened& e) const { out << "opened " << e.prompt_tokens; }
  void operator()(const step_output& e) const {
    out << "unit " << e.unit << " kind " << static_cast<int>(e.kind) << " '" << e.text << "' samples "
        << (e.audio ? e.audio->size() : 0) << " rows " << e.metrics.kv_cache_length;
    list(out, "sampled", e.choices->sampled);
    list(out, "spoken", e.choices->spoken);
  }
  void operator()(const chat_delta& e) const {
    out << "delta '" << e.text << "' samples " << (e.audio ? e.audio->size() : 0);
    list(out, "sampled", e.sampled);
    list(out, "spoken", e.spoken);
  }
  void operator()(const chat_done& e) const {
    out << "done '" << e.text << "' samples " << (e.audio ? e.audio->size() : 0) << " text " << e.used.output_text
        << " speech " << e.used.output_audio;
  }
  void operator()(const failed& e) const { out << "failed " << e.number << ": " << e.message; }
  void operator()(const replayed& e) const { out << "replayed " << e.unit; }
  void operator()(const closed&) const { out << "closed"; }
};

} // namespace

device_engine::device_engine(c10::Device device, config::settings settings)
    : engine(make_engine(with_device(std::move(settings), device),
                         [this](event&& e) { events.push_back(std::move(e)); })) {}

void device_engine::run() {
  for (auto passes = 0; engine->advance(); ++passes) REQUIRE(passes < 100000);
}

open_duplex plain_session(session_id id) {
  duplex_options how;
  how.force_listen_count = 1;
  // Longer than a page of the cache together with the voice: sessions that share it attend to it in one call.
  return {id,     "You are a helpful assistant who answers in few words.", how, part_of_question(0, 96000), nullptr,
          10 + id};
}

void converse(device_engine& with, int units) {
  with.handle(plain_session(plain));
  with.run(); // so that the fourth finds its prompt prefilled
  with.handle(plain_session(sharing));
  auto sees = plain_session(seeing);
  sees.system_prompt = "Look.";
  sees.voice = nullptr;
  sees.tts_voice = part_of_question(32000, 32000);
  sees.options.sampling.greedy = true;
  with.handle(std::move(sees));
  auto slides = plain_session(sliding);
  slides.voice = nullptr;
  slides.options.window = window_mode::basic;
  slides.options.window_high_tokens = 60;
  slides.options.window_low_tokens = 40;
  with.handle(std::move(slides));
  with.handle(open_chat{chatting, 3});
  with.run();
  submit_turn turn;
  turn.session = chatting;
  turn.turn = 1;
  turn.messages = {
      {role::user, {text_item{"Tell me a story."}, audio_item{part_of_question(0, 24000)}, image_item{picture(3)}}}};
  turn.max_new_tokens = 16;
  turn.do_sample = false;
  turn.tts = true;
  with.handle(std::move(turn));
  for (auto u = 0; u < units; ++u) {
    for (session_id id : {plain, seeing, sliding, sharing}) {
      submit_unit unit{{spoken_second(u + 2 * static_cast<int>(id)), {}, 1, false}, id, static_cast<std::uint64_t>(u)};
      if (id == seeing && u % 2 == 0) unit.frames = {picture(u)};
      with.handle(std::move(unit));
    }
    with.run();
  }
}

std::vector<std::string> lines_of(const device_engine& engine, session_id id) {
  std::vector<std::string> lines;
  for (const auto& e : engine.events) {
    if (std::visit([](const auto& of) { return of.session; }, e) != id) continue;
    std::ostringstream line;
    std::visit(as_line{line}, e);
    lines.push_back(line.str());
  }
  return lines;
}

std::vector<float> sound_of(const device_engine& engine, session_id id) {
  std::vector<float> sound;
  auto add = [&](const pcm& more) {
    if (more) sound.insert(sound.end(), more->begin(), more->end());
  };
  for (const auto& e : engine.events) {
    if (const auto* step = std::get_if<step_output>(&e); step && step->session == id) add(step->audio);
    if (const auto* delta = std::get_if<chat_delta>(&e); delta && delta->session == id) add(delta->audio);
    if (const auto* done = std::get_if<chat_done>(&e); done && done->session == id) add(done->audio);
  }
  return sound;
}

pcm spoken_second(int number) {
  return part_of_question(static_cast<std::size_t>(number) * 16000, 16000);
}

} // namespace parley::inference::testing
