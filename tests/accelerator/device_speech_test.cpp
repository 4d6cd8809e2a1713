#include "inference/engine/capacity.hpp"
#include "inference/formats/wav_file.hpp"
#include "inference/speech/speech_driver.hpp"
#include "inference/talker.hpp"
#include "inference/tts/turn.hpp"
#include "inference/voice/features.hpp"
#include "tests/accelerator/pretend_device.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// All sessions share each call on a device, and one after another is served on the CPU: what comes out must be the same.
using namespace parley::inference;
using namespace parley::inference::testing;
using speech::token2wav;
using speech::tts_turn;

namespace {

constexpr auto folder = "models/tiny-omni", trained = "models/nano";

const talker& talker_on(at::Device device, parley::config::speech_dtype dtype = parley::config::speech_dtype::float32) {
  static std::map<std::pair<std::string, parley::config::speech_dtype>, std::unique_ptr<const talker>> made;
  auto& one = made[{device.str(), dtype}];
  if (!one)
    one = std::make_unique<const talker>(checkpoint::open(folder), model_config::open(folder), quirks{}, at::kFloat,
                                         device, dtype);
  return *one;
}

/// The first `seconds` of the default voice.
std::shared_ptr<const speech::voice> part_of_default_voice(const token2wav& sound, double seconds) {
  const auto wav = speech::read_wav_file("models/tiny-omni/assets/default_voice.wav");
  const auto samples = std::min(wav.samples.size(1), static_cast<std::int64_t>(seconds * wav.rate));
  return sound.prepare(sound.ear().hear(wav.samples.narrow(1, 0, samples), wav.rate));
}

/// When a turn begins and ends, in calls that all share; its voice; and how many tokens its first call has.
struct timing {
  int begin, end;
  double voice_seconds;
  std::size_t first_tokens;
};

constexpr std::array<timing, 6> turns{
    {{0, 6, 1.2, 28}, {0, 0, 3, 2}, {1, 5, 3, 8}, {2, 2, 1.2, 30}, {2, 6, 3, 60}, {4, 5, 1.2, 11}}};

std::vector<std::int64_t> window_of(std::size_t who, int round) {
  const auto& turn = turns[who];
  const auto count = round == turn.begin ? turn.first_tokens : 28 - (5 * who + static_cast<std::size_t>(round)) % 13;
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int64_t>((97 * who + 31 * static_cast<std::size_t>(round) + 13 * i) % 6561));
  return tokens;
}

struct spoken {
  std::array<std::vector<at::Tensor>, turns.size()> sound;
  long downloads = 0, calls = 0;
};

/// `together`: one call for all who speak in a round.
spoken speak(const token2wav& by, bool together) {
  std::array<token2wav::stream, turns.size()> streams;
  for (std::size_t i = 0; i < turns.size(); ++i)
    streams[i] = by.start(part_of_default_voice(by, turns[i].voice_seconds));
  spoken result;
  for (int round = 0; round <= 6; ++round) {
    std::array<std::vector<std::int64_t>, turns.size()> tokens;
    std::vector<token2wav::job> jobs;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < turns.size(); ++i)
      if (turns[i].begin <= round && round <= turns[i].end) {
        tokens[i] = window_of(i, round);
        jobs.push_back({&streams[i], tokens[i], round == turns[i].end, nullptr, {}});
        who.push_back(i);
      }
    take_work();
    std::vector<at::Tensor> made;
    if (together)
      made = by.run(jobs);
    else
      for (const auto& job : jobs) made.push_back(by.run({&job, 1})[0]);
    result.downloads += take_work().downloads;
    ++result.calls;
    for (std::size_t k = 0; k < who.size(); ++k) result.sound[who[k]].push_back(made[k]);
  }
  return result;
}

/// Turns of one model that begin with so many rows each.
struct answers {
  answers(const speech::speech_models& of, std::span<const std::int64_t> rows) : model(*of.tokens) {
    speech::tts_sampling greedy;
    greedy.greedy = true;
    const auto& mark = of.embeddings->audio_bos();
    const auto words = at::linspace(-1, 1, 200, at::kFloat).unsqueeze(1).to(mark.device()) * mark;
    for (const auto n : rows) {
      all.emplace_back(*of.embeddings, model, speech::tts_form::whole, greedy);
      all.back().begin(words.narrow(0, 7, n), {1000, 1000});
    }
  }

  std::vector<speech::tts_step> steps() {
    std::vector<speech::tts_step> result;
    for (auto& turn : all) result.push_back({&turn, &chance});
    return result;
  }

  const speech::tts_llama& model;
  std::deque<tts_turn> all;
  random_stream chance{1, substream::speech_tokens};
};

/// The memory that some tensors keep alive, what they share counted once.
class kept_memory {
public:
  void add(const at::Tensor& x) {
    if (x.defined()) blocks_[x.storage().unsafeGetStorageImpl()] = x.storage().nbytes();
  }

  void add(const speech::flow::state& of) {
    add(of.encoder.lookahead);
    add(of.encoder.upsampled);
    for (const auto& layer : of.encoder.attention) add(layer);
    for (const auto& step : of.steps) {
      for (const auto& block : step.attention) add(block);
      for (const auto& block : step.conv) add(block);
    }
    const auto& [encoder, estimator] = of.shared;
    for (const auto* rows : {&encoder.token_rows, &encoder.mel_rows, &encoder.looked, &encoder.raised,
                             &estimator.keys_values, &estimator.inputs})
      if (rows->region() != nullptr) blocks_[rows->region()] = rows->region_bytes();
  }

  void add(const token2wav::stream& of) {
    add(of.acoustic);
    const auto& vocoder = std::get<speech::bounded_vocoder::state>(of.vocoder);
    for (const auto& x : {vocoder.mel, vocoder.source, vocoder.phase}) add(x);
  }

  void forget(const kept_memory& others) {
    for (const auto& [block, bytes] : others.blocks_) blocks_.erase(block);
  }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& [block, bytes] : blocks_) sum += bytes;
    return sum;
  }

private:
  void add(const speech::kv_history& of) {
    for (const auto& piece : of.pieces()) add(piece);
  }

  std::map<const void*, std::size_t> blocks_;
};

} // namespace

TEST_CASE("turns of different lengths sound on a device as each alone on the CPU") {
  const c10::InferenceMode guard;
  constexpr auto sound_tolerance = 1.5e-3; // the vocoder turns rounding errors into phase
  const auto expected = speak(talker_on(at::kCPU).sound(), false);
  const auto made = speak(talker_on(pretend_device()).sound(), true);
  CHECK(made.downloads == made.calls);
  for (std::size_t i = 0; i < turns.size(); ++i)
    for (std::size_t n = 0; n < expected.sound[i].size(); ++n) {
      INFO("turn " << i << ", call " << n);
      REQUIRE(made.sound[i][n].sizes() == expected.sound[i][n].sizes());
      if (expected.sound[i][n].numel() > 0)
        CHECK((made.sound[i][n] - expected.sound[i][n]).abs().max().item<double>() < sound_tolerance);
    }
}

TEST_CASE("the original vocoder sounds on a device as on the CPU, and asks as much for many streams as for one") {
  const c10::InferenceMode guard;
  // A window's highest harmonic turns by up to 20,000 rad: a millionth of f0, which is rounding, is 0.02 rad of a tenth.
  constexpr auto sound_tolerance = 6e-3;
  struct one {
    std::unique_ptr<const talker> by;
    std::deque<random_stream> chances;
    std::vector<token2wav::stream> streams;
    std::vector<device_work> work;

    explicit one(at::Device device)
        : by(std::make_unique<const talker>(checkpoint::open(trained), model_config::open(trained), quirks{},
                                            at::kFloat, device)) {
      REQUIRE(by->sound().kind() == token2wav::generation::legacy);
      for (std::size_t i = 0; i < turns.size(); ++i) {
        chances.emplace_back(i, substream::noise);
        streams.push_back(by->sound().start(part_of_default_voice(by->sound(), turns[i].voice_seconds)));
      }
    }

    /// The next window of those who speak in a round.
    std::vector<at::Tensor> sound(int round) {
      std::array<std::vector<std::int64_t>, turns.size()> tokens;
      std::vector<token2wav::job> jobs;
      for (std::size_t i = 0; i < turns.size(); ++i)
        if (turns[i].begin <= round && round <= turns[i].end) {
          tokens[i] = window_of(i, round);
          jobs.push_back({&streams[i], tokens[i], round == turns[i].end, &chances[i], {}});
        }
      take_work();
      auto made = by->sound().run(jobs);
      work.push_back(take_work());
      return made;
    }
  };
  one here(at::kCPU), there(pretend_device());
  for (auto round = 0; round <= 6; ++round) {
    const auto expected = here.sound(round), made = there.sound(round);
    REQUIRE(made.size() == expected.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      INFO("round " << round << ", job " << i);
      REQUIRE(made[i].sizes() == expected[i].sizes());
      if (made[i].numel() > 0) CHECK((made[i] - expected[i]).abs().max().item<double>() < sound_tolerance);
    }
    CHECK(there.work.back().downloads == 1);
  }
}

namespace {

/// A stream on the CPU and the same on a device, in the same voice.
struct two_streams {
  token2wav::stream here, there;

  explicit two_streams(double voice_seconds) {
    const auto &cpu = talker_on(at::kCPU).sound(), &device = talker_on(pretend_device()).sound();
    here = cpu.start(part_of_default_voice(cpu, voice_seconds));
    there = device.start(part_of_default_voice(device, voice_seconds));
  }
};

std::vector<std::int64_t> some_window(std::size_t who, int round, std::size_t count) {
  auto tokens = window_of(who, round);
  tokens.resize(count, 77);
  return tokens;
}

/// The next window of each, all on the device in one call.
void sound(std::span<two_streams*> streams, int round, bool last = false) {
  std::vector<std::vector<std::int64_t>> tokens;
  for (std::size_t i = 0; i < streams.size(); ++i) tokens.push_back(some_window(i, round, 28 - 6 * i % 18));
  std::vector<token2wav::job> jobs;
  for (std::size_t i = 0; i < streams.size(); ++i) jobs.push_back({&streams[i]->there, tokens[i], last, nullptr, {}});
  token2wav::trace made;
  talker_on(pretend_device()).sound().run(jobs, &made);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const token2wav::job job{&streams[i]->here, tokens[i], last, nullptr, {}};
    token2wav::trace expected;
    talker_on(at::kCPU).sound().run({&job, 1}, &expected);
    REQUIRE(made.mels[i].sizes() == expected.mels[0].sizes());
    INFO("stream " << i << ", round " << round);
    CHECK((made.mels[i].cpu() - expected.mels[0]).abs().max().item<double>() < 1e-4);
  }
}

/// What nobody owns on the device is not a number any more.
void spoil_free_rows() {
  const auto* memory = talker_on(pretend_device()).sound().acoustic().shared_memory();
  REQUIRE(memory != nullptr);
  const auto& [encoder, estimator] = *memory;
  for (const auto& pool : {encoder.token_rows, encoder.mel_rows, encoder.looked.pool(), encoder.raised.pool(),
                           estimator.keys_values, estimator.inputs.pool()}) {
    std::vector<std::shared_ptr<const speech::row_pool::region>> taken;
    while (pool.free_rows() > 0) {
      taken.push_back(pool.take(1));
      for (std::size_t n = 0; n < pool.parts(); ++n)
        pool.part(n).narrow(1, taken.back()->first(), 1).fill_(std::numeric_limits<double>::quiet_NaN());
    }
  }
}

} // namespace

TEST_CASE("rows that a stream has given back are read by nobody who takes them") {
  const c10::InferenceMode guard;
  two_streams lasting(1.2);
  {
    two_streams other(3), third(1.2);
    std::array<two_streams*, 3> all{&lasting, &other, &third};
    for (auto round = 0; round < 4; ++round) sound(all, round);
  }
  for (auto again = 0; again < 2; ++again) {
    spoil_free_rows();
    two_streams fresh(3), shorter(1.2);
    std::array<two_streams*, 3> all{&lasting, &fresh, &shorter};
    for (auto round = 4; round < 8; ++round) sound(all, round, false);
  }
}

TEST_CASE("a call that fails on a device leaves its streams as they were, wherever it fails") {
  const c10::InferenceMode guard;
  const auto& by = talker_on(pretend_device()).sound();
  two_streams old(1.2), young(3);
  std::array<two_streams*, 2> both{&old, &young};
  std::array<two_streams*, 1> one{&old};
  for (auto round = 0; round < 3; ++round) sound(one, round); // from the third on, each window drops rows
  const auto tokens = some_window(0, 9, 30), more = some_window(1, 9, 9);
  const std::array jobs{token2wav::job{&old.there, tokens, false, nullptr, {}},
                        token2wav::job{&young.there, more, false, nullptr, {}}};
  auto fails = 0;
  for (const auto kernels : {1, 20, 150, 400, 800}) {
    break_device_after(kernels);
    CHECK_THROWS(by.run(jobs));
    mend_device();
    ++fails;
    spoil_free_rows();
    sound(both, 3 * fails); // fewer rows than the window before has dropped, and more
    sound(both, 3 * fails + 1);
  }
}

TEST_CASE("a stream on a device can go back to any copy of it") {
  const c10::InferenceMode guard;
  two_streams stream(1.2);
  std::array<two_streams*, 1> one{&stream};
  auto round = 0;
  for (; round < 3; ++round) sound(one, round);
  for (auto windows = 1; windows <= 3; ++windows) {
    auto before_here = stream.here, before_there = stream.there;
    for (auto n = 0; n < windows; ++n) sound(one, round + n);
    stream.here = before_here;
    stream.there = before_there;
    spoil_free_rows();
    sound(one, round++); // while the copies still exist
  }
  sound(one, round, true);
}

TEST_CASE("speech tokens of turns of different lengths have the CPU's logits on a device") {
  const c10::InferenceMode guard;
  constexpr std::array<std::int64_t, 4> rows{1, 5, 70, 150};
  answers here(talker_on(at::kCPU).models(), rows), there(talker_on(pretend_device()).models(), rows);
  std::vector<tts_turn> kept;
  auto step = [&] {
    const auto expected = speech::tts_logits(here.model, here.steps());
    const auto made = speech::tts_logits(there.model, there.steps());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK((made[i] - expected[i]).abs().max().item<double>() < 1e-4);
      speech::tts_take(here.steps()[i], expected[i]); // else a near tie could part them
      speech::tts_take(there.steps()[i], expected[i]);
    }
  };
  for (auto n = 0; n < 40; ++n) step(); // the caches of the first two are full after 64 rows, and others move
  kept.assign(there.all.begin(), there.all.end());
  const std::vector<tts_turn> kept_here(here.all.begin(), here.all.end());
  for (auto n = 0; n < 30; ++n) step();
  there.all.assign(kept.begin(), kept.end()); // as after a unit that is taken back
  here.all.assign(kept_here.begin(), kept_here.end());
  kept.clear();
  for (auto n = 0; n < 20; ++n) step();
  take_work();
  step();
  CHECK(take_work().downloads == 1);
}

TEST_CASE("in mixed precision a device's mels and logits are those of float32 but for rounding") {
  const c10::InferenceMode guard;
  const auto distance = [](const at::Tensor& a, const at::Tensor& b) {
    REQUIRE(a.sizes() == b.sizes());
    return ((a - b).norm() / b.norm()).item<double>();
  };
  constexpr double rounding = 1.0 / 256; // of a factor and of a result, at most half of it each
  const auto &exact = talker_on(pretend_device()),
             &mixed = talker_on(pretend_device(), parley::config::speech_dtype::mixed);
  std::array<std::vector<at::Tensor>, 2> mels, logits;
  std::array<std::map<std::string, long>, 2> kernels;
  for (const auto which : {0, 1}) {
    const auto& by = which == 0 ? exact : mixed;
    std::vector<token2wav::stream> streams;
    for (const auto seconds : {1.2, 3.0})
      streams.push_back(by.sound().start(part_of_default_voice(by.sound(), seconds)));
    const std::array<std::int64_t, 2> rows{5, 70};
    answers turns(by.models(), rows);
    take_work();
    for (auto round = 0; round < 4; ++round) {
      const auto first = some_window(0, round, 28), second = some_window(1, round, 20);
      const std::array jobs{token2wav::job{&streams[0], first, false, nullptr, {}},
                            token2wav::job{&streams[1], second, false, nullptr, {}}};
      token2wav::trace seen;
      by.sound().run(jobs, &seen);
      for (const auto& mel : seen.mels) mels[which].push_back(mel.cpu());
    }
    for (auto step = 0; step < 10; ++step) {
      const auto made = speech::tts_logits(*by.models().tokens, turns.steps());
      for (std::size_t i = 0; i < made.size(); ++i) {
        logits[which].push_back(made[i]);
        speech::tts_take(turns.steps()[i], logits[0][2 * static_cast<std::size_t>(step) + i]);
      }
    }
    kernels[which] = take_work().by_kernel;
  }
  for (std::size_t i = 0; i < mels[0].size(); ++i) CHECK(distance(mels[1][i], mels[0][i]) < 8 * rounding);
  for (std::size_t i = 0; i < logits[0].size(); ++i) CHECK(distance(logits[1][i], logits[0][i]) < 8 * rounding);
  CHECK(kernels[0]["aten::_flash_attention_forward"] == 0);
  CHECK(kernels[1]["aten::_efficient_attention_forward"] == 0);
  CHECK(kernels[1]["aten::_flash_attention_forward"] == kernels[0]["aten::_efficient_attention_forward"]);
}

TEST_CASE("what a device says in mixed precision differs no more than what a CPU says in it") {
  const c10::InferenceMode guard;
  constexpr double of_cpus = 1.6; // dB: with it, words are understood as in float32 (bench/README.md)
  constexpr double quietest = 60, decibels = 8.6858896; // below the loudest; of a neper
  const auto weights = checkpoint::open(trained);
  const auto sizes = model_config::open(trained);
  const auto spectrum_of = [&](at::Device device, parley::config::speech_dtype dtype) {
    const talker by(weights, sizes, quirks{}, at::kFloat, device, dtype);
    const auto voice = part_of_default_voice(by.sound(), 6);
    const auto heard = voice->heard.tokens.cpu();
    const std::span tokens(heard.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(heard.size(0)));
    auto stream = by.sound().start(voice);
    random_stream chance(1, substream::noise);
    std::vector<at::Tensor> sound;
    for (std::size_t from = 0;; from += speech::window_step) {
      const auto last = from + speech::window_tokens >= tokens.size();
      const auto window = tokens.subspan(from, std::min(speech::window_tokens, tokens.size() - from));
      const token2wav::job job{&stream, window, last, &chance, {}};
      sound.push_back(by.sound().run({&job, 1})[0]);
      if (last) break;
    }
    const auto spectrum = speech::prompt_log_mel(at::cat(sound)) * decibels;
    return spectrum.clamp_min(spectrum.max().item<double>() - quietest);
  };
  const auto distortion = [](const at::Tensor& a, const at::Tensor& b) {
    REQUIRE(a.sizes() == b.sizes());
    return (a - b).square().mean(1).sqrt().mean().item<double>();
  };
  using parley::config::speech_dtype;
  const auto exact = spectrum_of(pretend_device(), speech_dtype::float32);
  const auto mixed = distortion(spectrum_of(pretend_device(), speech_dtype::mixed), exact);
  const auto here = distortion(spectrum_of(at::kCPU, speech_dtype::mixed), exact);
  const auto rounding = distortion(spectrum_of(at::kCPU, speech_dtype::float32), exact);
  WARN("spectral distortion in dB: " << mixed << "; on the CPU " << here << "; of float32 between them " << rounding);
  CHECK(exact.size(0) > 100);
  CHECK(mixed > rounding);
  CHECK(mixed < of_cpus);
}

TEST_CASE("several speech tokens that a device chooses are those that the host would choose") {
  const c10::InferenceMode guard;
  const auto& by = talker_on(pretend_device()).models();
  const auto& model = *by.tokens;
  const auto words =
      at::linspace(-1, 1, 200, at::kFloat).unsqueeze(1).to(pretend_device()) * by.embeddings->audio_bos();
  using speech::tts_form;
  struct session {
    tts_form form;
    std::int64_t rows, next_rows;
    speech::tts_limits limits;
  };
  constexpr std::array<session, 5> sessions{{{tts_form::duplex, 4, 3, {26, 26}},
                                             {tts_form::duplex, 60, 2, {26, 0}},
                                             {tts_form::streamed, 5, 7, {30, 3}},
                                             {tts_form::whole, 33, 1, {41, 20}},
                                             {tts_form::streamed, 1, 12, {9, 0}}}};
  std::array<std::deque<tts_turn>, 2> turns;
  std::array<std::deque<random_stream>, 2> chances;
  for (const auto which : {0, 1})
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      turns[which].emplace_back(*by.embeddings, model, sessions[i].form, speech::tts_sampling{});
      chances[which].emplace_back(i, substream::speech_tokens);
      turns[which].back().begin(words.narrow(0, 3, sessions[i].rows), sessions[i].limits);
    }
  long downloads = 0, calls = 0;
  for (const auto group : {0, 1}) {
    for (const auto which : {0, 1})
      while (std::ranges::any_of(turns[which], &tts_turn::running)) {
        std::vector<speech::tts_step> steps;
        for (std::size_t i = 0; i < sessions.size(); ++i)
          if (turns[which][i].running()) steps.push_back({&turns[which][i], &chances[which][i]});
        if (which == 0) {
          speech::tts_advance(model, steps);
          continue;
        }
        for (const auto& step : steps) REQUIRE(speech::tts_chooses(model, step));
        take_work();
        const auto chosen = speech::tts_choose(model, steps, 4);
        downloads += take_work().downloads;
        ++calls;
        for (std::size_t k = 0; k < steps.size(); ++k) steps[k].turn->take(chosen[k], *steps[k].chance);
      }
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      INFO("group " << group << ", session " << i);
      const auto here = turns[0][i].chosen(), there = turns[1][i].chosen();
      CHECK(std::vector(there.begin(), there.end()) == std::vector(here.begin(), here.end()));
      CHECK(turns[1][i].cache().length() == turns[0][i].cache().length());
      CHECK(chances[1][i].where() == chances[0][i].where());
      for (const auto which : {0, 1})
        turns[which][i].begin(words.narrow(0, 70, sessions[i].next_rows), sessions[i].limits);
    }
  }
  CHECK(downloads == calls);
}

TEST_CASE("a device chooses no speech token from what is not a number") {
  const c10::InferenceMode guard;
  const auto& by = talker_on(pretend_device()).models();
  const auto bad = at::full({3, by.embeddings->audio_bos().size(1)}, NAN).to(pretend_device());
  const auto good = at::linspace(-1, 1, 3, at::kFloat).unsqueeze(1).to(pretend_device()) * by.embeddings->audio_bos();
  std::deque<tts_turn> turns;
  std::deque<random_stream> chances;
  std::vector<speech::tts_step> steps;
  for (const auto& words : {good, bad, good}) {
    turns.emplace_back(*by.embeddings, *by.tokens, speech::tts_form::duplex, speech::tts_sampling{});
    turns.back().begin(words, {26, 26});
    chances.emplace_back(7, substream::speech_tokens);
    steps.push_back({&turns.back(), &chances.back()});
  }
  const auto chosen = speech::tts_choose(*by.tokens, steps, 4);
  CHECK_THROWS_WITH(turns[1].take(chosen[1], chances[1]), Catch::Contains("not numbers"));
  for (const std::size_t i : {0, 2}) turns[i].take(chosen[i], chances[i]);
  CHECK(chosen[0] == chosen[2]);
  CHECK(turns[0].chosen().size() == 4);
}

TEST_CASE("streams hold no more memory than is booked for them, and not much less") {
  const c10::InferenceMode guard;
  constexpr std::size_t streams = 5;
  for (const auto* speaker_of_kind : {&talker_on(at::kCPU), &talker_on(pretend_device()),
                                      &talker_on(pretend_device(), parley::config::speech_dtype::mixed)}) {
    const auto& speaker = *speaker_of_kind;
    const auto voice = part_of_default_voice(speaker.sound(), 6);
    const auto booked = speaking_memory({}, speech_memory_of(speaker, *voice), voice->prompt_rows()).flow;
    std::vector<token2wav::stream> all(streams, speaker.sound().start(voice));
    std::vector<std::int64_t> tokens(speech::window_tokens, 100);
    kept_memory shared;
    shared.add(voice->prompt);
    std::size_t most = 0;
    for (auto n = 0; n < 12; ++n) {
      std::vector<token2wav::job> jobs;
      for (auto& stream : all) jobs.push_back({&stream, tokens, false, nullptr, {}});
      speaker.sound().run(jobs);
      kept_memory held;
      for (const auto& stream : all) held.add(stream);
      held.forget(shared);
      most = std::max(most, held.bytes());
    }
    CHECK(most <= streams * booked);
    CHECK(most > streams * booked / 2);
  }
}
