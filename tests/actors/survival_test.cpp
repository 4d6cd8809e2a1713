#include "actors/replay/replay_buffer.hpp"
#include "config/settings.hpp"
#include "inference/engine.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

// A replay buffer and two real engines: what a client receives from a session that repeatedly loses its engine.
namespace parley::actors {

namespace {

using namespace conversation;
using namespace inference;

constexpr float same_sound = 1e-3F;

/// Two engines with the same model; the session is on one of them.
class machines {
public:
  machines() {
    config::settings settings;
    settings.worker.model = "models/tiny-omni";
    settings.worker.max_sessions = 1;
    settings.worker.threads = 1;
    settings.engine.context_tokens = 2048;
    for (auto& one : engines_) one = make_engine(settings, [this](event&& e) { heard_.push_back(std::move(e)); });
  }

  void send(command order) { engines_[in_use_]->handle(std::move(order)); }

  /// Runs passes until something is reported; false if there is nothing to do.
  bool work() {
    while (heard_.empty())
      if (!engines_[in_use_]->advance() && heard_.empty()) return false;
    return true;
  }
  std::vector<event> heard() { return std::exchange(heard_, {}); }

  /// The session loses its engine, with everything that it would still have answered.
  void lose(session_id session) {
    send(close_session{session});
    heard_.clear();
    in_use_ = 1 - in_use_;
  }

private:
  std::vector<event> heard_;
  std::array<std::unique_ptr<engine>, 2> engines_;
  std::size_t in_use_ = 0;
};

machines& both() {
  static machines made;
  return made;
}

/// What a client received for one unit or turn.
struct got {
  std::string text;
  std::vector<float> sound;
  int ends = 0; ///< last deltas, or ends of the turn
  bool listen = false;
};

/// A client together with its session, as the session actor keeps it. It loses its engine at random, but never if
/// `patience` is 0.
class client {
public:
  client(unsigned seed, unsigned patience) : random_(seed), patience_(patience) {}

  void begin(command open) {
    both().send(notes_.enter(std::move(open)));
    while (!notes_.whole()) take();
  }

  const got& ask(std::uint64_t number, const command& order) {
    both().send(notes_.enter(order));
    for (; all_[number].ends == 0; take()) {
      if (!unlucky()) continue;
      move();
      auto again = order;
      std::visit([this](auto& o) { o.session = session_; }, again);
      both().send(notes_.enter(std::move(again)));
    }
    if (unlucky()) move();
    return all_[number];
  }

  void end() { both().lose(session_); }

  session_id session() const { return session_; }
  int moves() const { return moves_; }
  const std::map<std::uint64_t, got>& all() const { return all_; }

private:
  bool unlucky() { return patience_ > 0 && random_() % patience_ == 0; }

  void take() {
    REQUIRE(both().work());
    for (const auto& e : both().heard()) {
      notes_.note(e);
      if (const auto* o = std::get_if<step_output>(&e)) {
        auto& of = all_[o->unit];
        of.text += o->text;
        add(of.sound, o->audio);
        of.listen |= o->kind == output_kind::listen;
        of.ends += o->last;
      } else if (const auto* d = std::get_if<chat_delta>(&e)) {
        all_[d->turn].text += d->text;
        add(all_[d->turn].sound, d->audio);
      } else if (const auto* done = std::get_if<chat_done>(&e)) {
        CHECK(done->text == all_[done->turn].text);
        add(all_[done->turn].sound, done->audio);
        ++all_[done->turn].ends;
      } else if (const auto* f = std::get_if<failed>(&e)) {
        FAIL(f->message);
      }
    }
  }

  void move() {
    ++moves_;
    both().lose(session_);
    notes_.rewind();
    ++session_;
    for (bool again = false; !notes_.caught_up();) {
      while (auto order = notes_.next(session_)) both().send(*std::move(order));
      take();
      if (again || random_() % 20 != 0) continue; // else the next engine is lost during the replay
      again = true;
      both().lose(session_);
      notes_.rewind();
      ++session_;
    }
  }

  static void add(std::vector<float>& to, const pcm& sound) {
    if (sound) to.insert(to.end(), sound->begin(), sound->end());
  }

  std::mt19937 random_;
  unsigned patience_;
  replay_buffer notes_;
  session_id session_ = 1;
  std::map<std::uint64_t, got> all_;
  int moves_ = 0;
};

pcm noise(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> level(0, 0.1F);
  auto made = std::make_shared<std::vector<float>>(16000);
  for (auto& x : *made) x = std::clamp(level(random), -1.0F, 1.0F);
  return made;
}

float compare(const client& mine, const client& undisturbed) {
  REQUIRE(mine.all().size() == undisturbed.all().size());
  float worst = 0;
  for (const auto& [number, a] : mine.all()) {
    const auto& b = undisturbed.all().at(number);
    INFO("number " << number);
    CHECK(a.ends == 1);
    CHECK(a.text == b.text);
    CHECK(a.listen == b.listen);
    REQUIRE(a.sound.size() == b.sound.size());
    for (std::size_t i = 0; i < a.sound.size(); ++i) worst = std::max(worst, std::abs(a.sound[i] - b.sound[i]));
  }
  return worst;
}

void talk(client& who, unsigned seed) {
  open_duplex open{};
  open.session = who.session();
  open.system_prompt = "You are a helpful assistant.";
  open.options.force_listen_count = 1;
  open.options.tts_temperature = 0; // no sampling among thousands of tokens, where rounding could decide
  open.seed = seed;
  who.begin(open);
  for (unsigned u = 0; u < 12; ++u) {
    submit_unit unit{};
    unit.session = who.session();
    unit.unit = u;
    unit.samples = noise(seed * 100 + u);
    unit.force_listen = u == 7;
    who.ask(u, unit);
  }
  who.end();
}

void chat(client& who, unsigned seed, bool tts) {
  who.begin(open_chat{who.session(), seed});
  for (unsigned t = 1; t <= 3; ++t) {
    submit_turn turn{};
    turn.session = who.session();
    turn.turn = t;
    turn.messages = {{role::user, {text_item{"Tell me story number " + std::to_string(t)}}}};
    turn.max_new_tokens = 40;
    turn.tts = tts;
    turn.streaming = t != 2;
    who.ask(t, turn);
  }
  who.end();
}

} // namespace

TEST_CASE("a conversation is the same whoever ran it, and how often it was moved") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    client undisturbed(0, 0);
    talk(undisturbed, seed);
    std::size_t sound = 0;
    for (const auto& [number, of] : undisturbed.all()) sound += of.sound.size();
    CHECK(sound > 24000);
    client moved(seed, 3);
    talk(moved, seed);
    INFO("seed " << seed << ", moved " << moved.moves() << " times");
    CHECK(moved.moves() > 2);
    CHECK(compare(moved, undisturbed) <= same_sound);
  }
}

TEST_CASE("a chat is the same, whoever ran it") {
  for (const bool tts : {false, true}) {
    client undisturbed(0, 0);
    chat(undisturbed, 4, tts);
    client moved(5, 8);
    chat(moved, 4, tts);
    INFO("moved " << moved.moves() << " times");
    CHECK(moved.moves() > 2);
    CHECK(compare(moved, undisturbed) <= same_sound);
  }
}

} // namespace parley::actors
