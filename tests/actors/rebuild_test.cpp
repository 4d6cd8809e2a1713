#include "actors/log/rebuild.hpp"

#include "actors/log/id_source.hpp"
#include "actors/log/log_format.hpp"
#include "actors/log/token_hash.hpp"
#include "protocol/codec/server_codec.hpp"
#include "protocol/media/pcm.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace parley;
using namespace parley::actors;
using namespace std::chrono_literals;

// A session that lives and writes its log, and what is rebuilt from that.

namespace {

constexpr std::int64_t accepted_ns = 1'700'000'000'000'000'000;

std::string append_frame(std::size_t samples, float value, bool force) {
  std::string frame = R"({"type":"input.append","input":{"audio":")";
  protocol::append_samples(std::vector<float>(samples, value), frame);
  return frame + (force ? R"(","force_listen":true}})" : R"("}})");
}

/// Effects as text, so that two machines can be compared.
std::string text_of(const protocol::effects& all, double send_time_s) {
  std::string text;
  for (const auto& effect : all) {
    text += "|" + std::to_string(effect.index());
    if (const auto* sent = std::get_if<protocol::send>(&effect)) {
      protocol::encode_context context;
      context.spoken = sent->spoken;
      context.session_id = sent->session_id;
      context.event_id = sent->event_id;
      context.send_time_s = send_time_s;
      text += protocol::encode(sent->event, context);
    }
    if (const auto* unit = std::get_if<conversation::submit_unit>(&effect)) {
      text += std::to_string(unit->unit) + (unit->force_listen ? "!" : "");
      text += std::to_string(unit->samples->front()) + "," + std::to_string(unit->samples->back());
      for (const auto& each : unit->context) text += each.text;
    }
    if (const auto* turn = std::get_if<conversation::submit_turn>(&effect)) text += std::to_string(turn->turn);
    if (const auto* order = std::get_if<protocol::enqueue>(&effect)) text += order->at_head ? "head" : "";
  }
  return text;
}

/// What a session's actor, its queue and its worker do, without any of them.
class life {
public:
  life(unsigned seed, bool chat) : random_(seed), chat_(chat) {
    begin_.accepted_ns = accepted_ns;
    begin_.mode = chat ? "chat" : "audio";
    begin_.session_id = "sess_x";
    begin_.legacy_id = "rt_1";
    begin_.id_seed = seed;
    begin_.limits.audio = begin_.limits.chat = 300s;
    begin_.able = {true, true, true};
    machine_ = std::make_unique<protocol::session_machine>(
        protocol::session_origin{begin_.mode, begin_.session_id, begin_.legacy_id, {}, start_}, begin_.limits,
        begin_.able, id_source(seed), [this] { return "resume_" + std::to_string(++tokens_); });
    machine_->start(now_);
    machine_->on_granted(now_);
    const std::string init =
        R"({"type":"session.init","payload":{"resume":true,"config":{"force_listen_count":0,"transcribe_input":true},"tools":[{"name":"f"}]}})";
    do_all(machine_->on_frame(init, now_));
    log_ = log_header();
    keep(begin_, {});
    keep(logged::frame{std::make_shared<const std::string>(init)}, now_ - start_);
    now_ += 12345ns;
    hear(conversation::opened{0, 20, {.input_text = 20}, 7});
    keep(hashes_of(*machine_->token()), now_ - start_);
  }

  bool over() const { return machine_->state() == protocol::session_state::closed; }

  void act() {
    now_ += std::chrono::nanoseconds(1 + random_() % 700'000'000);
    const auto due = machine_->next_deadline();
    if (due && *due <= now_) {
      keep(logged::tick{}, now_ - start_);
      do_all(machine_->tick(now_));
      if (over()) return;
    }
    switch (random_() % 10) {
    case 0:
    case 1:
    case 2:
    case 3: take(input()); break;
    case 4:
      if (random_() % 4 == 0)
        take(random_() % 2 == 0 ? "{}" : R"({"type":"x"})");
      else
        take_result();
      break;
    case 5: worker(); break;
    case 6:
      if (random_() % 3 == 0)
        come_back();
      else
        write_down();
      break;
    default: answer();
    }
  }

  /// The session as another process would rebuild it now, compared with this one.
  rebuilt_session rebuilt() {
    auto again = rebuild(log_, terms());
    if (!again) FAIL(again.error());
    std::vector<std::string> resent;
    again->sent.after(0, [&](const auto& frame) { resent.push_back(*frame); });
    REQUIRE(resent.size() == said_.size());
    // The first one has the token that the client showed, which is not the first if it came back before.
    const int same_from = tokens_ == 1 ? 0 : 1;
    const bool same = std::equal(resent.begin() + same_from, resent.end(), said_.begin() + same_from);
    CHECK(same);
    CHECK(again->accepted == start_);
    CHECK(again->kept.units() == kept_.units());
    CHECK(again->kept.awaits_answer() == kept_.awaits_answer());
    return *std::move(again);
  }

  rebuild_terms terms() {
    rebuild_terms terms;
    terms.resume_bytes = std::size_t{1} << 30;
    terms.shown_token = machine_->token()->token();
    terms.fresh_tokens = [this] { return "resume_" + std::to_string(++tokens_); };
    terms.now = now_;
    terms.now_ns = accepted_ns + std::chrono::nanoseconds(now_ - start_).count();
    return terms;
  }

  /// Does the same to both machines and compares what they want.
  void go_on_beside(protocol::session_machine& other) {
    std::string mine = text_of(machine_->on_taken_up(now_), 0);
    mine += text_of(machine_->tick(now_), 0);
    const bool starts_alike = mine == first_;
    CHECK(starts_alike);
    if (over()) return;
    const auto both = [&](auto what) {
      const bool same = text_of(what(*machine_), 0) == text_of(what(other), 0);
      CHECK(same);
    };
    const auto claim = protocol::resume_claim{machine_->token()->token(), 1};
    const auto tokens = tokens_;
    const auto first = machine_->on_resume(claim, 1, now_);
    tokens_ = tokens;
    const auto second = other.on_resume(claim, 1, now_);
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    const bool same = text_of(*first, 0) == text_of(*second, 0);
    CHECK(same);
    both([&](auto& machine) { return machine.on_granted(now_); });
    both([&](auto& machine) { return machine.on_restored(now_); });
    for (; !calls_.empty(); calls_.pop_front()) {
      const auto frame = R"({"type":"input.tool_result","tool_call_id":")" + calls_.front() + R"(","content":"14:30"})";
      both([&](auto& machine) { return machine.on_frame(frame, now_); });
    }
    for (int i = 0; i < 8; ++i) {
      now_ += 300ms;
      const auto frame = input();
      both([&](auto& machine) { return machine.on_frame(frame, now_); });
      const auto words = answers();
      for (const auto& word : words)
        both([&](auto& machine) { return machine.on_engine(conversation::event(word), now_); });
    }
    both([&](auto& machine) { return machine.on_close_request("done", now_); });
  }

  void expect_first(const protocol::effects& first) { first_ = text_of(first, 0); }

  std::string log_;
  std::vector<std::string> said_; ///< the numbered events
  int written_ = 0;               ///< turns of the user
  int called_ = 0;                ///< results of functions

private:
  void keep(log_record what, std::chrono::nanoseconds at) { append_record(log_, pack({at, std::move(what)})); }

  std::string input() {
    if (chat_) return R"({"type":"input.append","input":{"messages":[{"role":"user","content":"hello"}]}})";
    constexpr std::size_t lengths[] = {4'000, 16'000, 16'000, 40'000};
    const bool quiet = random_() % 2 == 0;
    const auto value = quiet ? 0 : static_cast<float>(random_() % 100) / 128;
    return append_frame(lengths[random_() % 4], value, random_() % 5 == 0);
  }

  void take(const std::string& frame) {
    keep(logged::frame{std::make_shared<const std::string>(frame)}, now_ - start_);
    do_all(machine_->on_frame(frame, now_));
  }

  /// Of the oldest call that has none.
  void take_result() {
    if (calls_.empty()) return;
    const auto rest = random_() % 4 == 0 ? R"("cancelled":true})" : R"("content":"14:30"})";
    take(R"({"type":"input.tool_result","tool_call_id":")" + calls_.front() + "\"," + rest);
    calls_.pop_front();
    ++called_;
  }

  /// What the user said in the oldest turn that nobody has written down, or the function that it wants called.
  void write_down() {
    if (turns_.empty()) return;
    const auto [number, judged] = turns_.front();
    turns_.pop_front();
    protocol::transcript heard{number, static_cast<protocol::transcript_result>(random_() % 4), "hello", 1};
    if (judged) heard.calls = {{"", "f", R"({"x":)" + std::to_string(random_() % 5) + "}"}};
    keep(logged::user_turn{heard}, now_ - start_);
    do_all(machine_->on_transcript(heard, now_));
    ++written_;
  }

  void come_back() {
    const auto welcome = machine_->on_resume({machine_->token()->token(), 0}, 1, now_);
    REQUIRE(welcome.has_value());
    keep(logged::resumed{hashes_of(*machine_->token())}, now_ - start_);
  }

  void worker() {
    if (restoring_) {
      restoring_ = false;
      keep(logged::worker_news{logged::worker_change::granted}, now_ - start_);
      do_all(machine_->on_granted(now_));
      keep(logged::worker_news{logged::worker_change::restored}, now_ - start_);
      do_all(machine_->on_restored(now_));
    } else if (random_() % 4 == 0) {
      restoring_ = true;
      keep(logged::worker_news{logged::worker_change::lost}, now_ - start_);
      do_all(machine_->on_worker_lost(now_));
      work_.clear();
    }
  }

  /// The events with which an engine answers the oldest work.
  std::vector<conversation::event> answers() {
    std::vector<conversation::event> words;
    if (work_.empty()) return words;
    const auto number = work_.front();
    work_.pop_front();
    if (random_() % 15 == 0) {
      words.emplace_back(conversation::failed{0, number, conversation::failure_kind::inference, "broken"});
      return words;
    }
    if (chat_) {
      conversation::chat_delta delta{0, number, "Hello ", nullptr};
      delta.sampled = {1, 2};
      words.emplace_back(delta);
      words.emplace_back(
          conversation::chat_done{0, number, conversation::finish_reason::turn_end, "Hello ", nullptr, {}, {}});
      return words;
    }
    conversation::unit_choices chosen;
    chosen.sampled = {static_cast<std::int64_t>(number)};
    conversation::step_output output{};
    output.unit = number;
    output.used.input_audio = 10;
    output.metrics.kv_cache_length = 30;
    if (random_() % 2 == 0) {
      output.kind = conversation::output_kind::text;
      output.text = "word ";
      output.last = false;
      output.choices = std::make_shared<const conversation::unit_choices>(chosen);
      words.emplace_back(output);
      output.kind = conversation::output_kind::audio;
      output.text = "";
      output.audio = std::make_shared<const std::vector<float>>(24'000, 0.25F);
      output.first = false;
      output.end_of_turn = random_() % 3 == 0;
    } else {
      output.kind = conversation::output_kind::listen;
    }
    output.last = true;
    chosen.finished = true;
    output.choices = std::make_shared<const conversation::unit_choices>(std::move(chosen));
    words.emplace_back(std::move(output));
    return words;
  }

  void answer() {
    if (restoring_) return;
    for (auto& word : answers()) {
      if (!over()) hear(std::move(word));
    }
  }

  void hear(conversation::event word) {
    keep(logged::engine_word{word}, now_ - start_);
    kept_.note(word);
    do_all(machine_->on_engine(std::move(word), now_));
  }

  void do_all(protocol::effects effects) {
    for (auto& effect : effects) {
      if (const auto* sent = std::get_if<protocol::send>(&effect); sent && sent->event_id > 0) {
        protocol::encode_context context;
        context.spoken = sent->spoken;
        context.session_id = sent->session_id;
        context.event_id = sent->event_id;
        context.send_time_s =
            static_cast<double>((accepted_ns + std::chrono::nanoseconds(now_ - start_).count()) / 1'000'000) / 1000;
        said_.push_back(protocol::encode(sent->event, context));
        if (const auto* made = std::get_if<protocol::duplex_call_done>(&sent->event)) calls_.push_back(made->call.id);
      }
      if (const auto* open = std::get_if<protocol::open_engine>(&effect)) kept_.enter(open->order);
      if (auto* unit = std::get_if<conversation::submit_unit>(&effect)) {
        work_.push_back(unit->unit);
        kept_.enter(std::move(*unit));
      }
      if (const auto* turn = std::get_if<conversation::submit_turn>(&effect)) {
        work_.push_back(turn->turn);
        kept_.enter(*turn);
      }
      if (const auto* turn = std::get_if<protocol::transcribe_turn>(&effect))
        turns_.emplace_back(turn->what.number, turn->what.offer != nullptr);
    }
  }

  std::mt19937_64 random_;
  bool chat_;
  logged::beginning begin_;
  const protocol::time_point start_{1000h};
  protocol::time_point now_ = start_;
  std::unique_ptr<protocol::session_machine> machine_;
  replay_buffer kept_;
  std::deque<std::uint64_t> work_;
  std::deque<std::pair<std::uint64_t, bool>> turns_; ///< of the user, to be written down, or judged
  std::deque<std::string> calls_;
  bool restoring_ = false;
  int tokens_ = 0;
  std::string first_;
};

/// The first record of each kind, and where it ends in the log.
std::vector<std::size_t> ends_of(const std::string& log) {
  log_reader in(log);
  std::vector<std::size_t> ends{in.good_bytes()};
  while (in.next()) ends.push_back(in.good_bytes());
  return ends;
}

} // namespace

TEST_CASE("a session that is rebuilt at any moment has said the same, and goes on in the same way") {
  int compared = 0, written = 0, called = 0;
  for (unsigned seed = 1; seed <= 120; ++seed) {
    life session(seed, seed % 3 == 0);
    for (auto rounds = 1 + seed % 60; rounds > 0 && !session.over(); --rounds) session.act();
    if (session.over()) continue;
    CAPTURE(seed);
    auto again = session.rebuilt();
    session.expect_first(again.first);
    session.go_on_beside(*again.machine);
    ++compared;
    written += session.written_;
    called += session.called_;
  }
  CHECK(compared > 80);
  CHECK(written > 20);
  CHECK(called > 20);
}

TEST_CASE("a log that is cut anywhere is used up to there, or refused in words") {
  life session(5, false);
  for (int i = 0; i < 12; ++i) session.act();
  REQUIRE_FALSE(session.over());
  const auto ends = ends_of(session.log_);
  std::mt19937 random(1);
  int rebuilt_from = 0;
  // Every cut of the beginning; later, some of each record.
  for (std::size_t cut = 0; cut < session.log_.size(); cut += cut < 2000 ? 1 : 1 + random() % 997) {
    const auto log = std::string_view(session.log_).substr(0, cut);
    const auto made = rebuild(log, session.terms());
    if (!made) {
      CHECK_FALSE(made.error().empty());
      continue;
    }
    ++rebuilt_from;
    std::vector<std::string> resent;
    auto& sent = const_cast<protocol::sent_events&>(made->sent);
    sent.after(0, [&](const auto& frame) { resent.push_back(*frame); });
    REQUIRE(resent.size() <= session.said_.size());
    CHECK(std::equal(resent.begin(), resent.end(), session.said_.begin()));
  }
  CHECK(rebuilt_from > 20);
}

TEST_CASE("any flipped byte of a log is noticed") {
  life session(6, true);
  for (int i = 0; i < 12; ++i) session.act();
  const auto whole = rebuild(session.log_, session.terms());
  for (std::size_t at = 0; at < session.log_.size(); ++at) {
    auto damaged = session.log_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    const auto known = survey(damaged);
    if (known) CHECK(known->good_bytes <= at);
    rebuild(damaged, session.terms());
  }
  CHECK(whole.has_value());
}

TEST_CASE("records with good checksums that contradict each other are refused") {
  life session(7, false);
  for (int i = 0; i < 6; ++i) session.act();
  const auto with = [&](log_record what) {
    auto log = session.log_;
    append_record(log, pack({1s, std::move(what)}));
    return rebuild(log, session.terms()).has_value();
  };
  CHECK(with(logged::tick{}));
  // Its process died when the session had ended, but its log was not removed yet.
  CHECK_FALSE(with(logged::frame{std::make_shared<const std::string>(R"({"type":"session.close"})")}));
  CHECK_FALSE(with(logged::beginning{}));
  CHECK_FALSE(with(logged::engine_word{conversation::opened{}}));
  CHECK_FALSE(with(logged::worker_news{static_cast<logged::worker_change>(9)}));
  auto log = session.log_;
  append_record(log, "nonsense");
  CHECK_FALSE(rebuild(log, session.terms()).has_value());
  // Only its beginning, without a conversation.
  const auto ends = ends_of(session.log_);
  CHECK_FALSE(rebuild(std::string_view(session.log_).substr(0, ends.at(2)), session.terms()).has_value());
}

TEST_CASE("a session is given up if two processes that took it up ended at the same work") {
  life session(8, false);
  do session.act();
  while (ends_of(session.log_).size() < 12);
  auto log = session.log_;
  const auto add = [&](log_record what) { append_record(log, pack({20s, std::move(what)})); };
  std::string unit = append_frame(160'000, 0.5F, false); // surely some work
  add(logged::frame{std::make_shared<const std::string>(unit)});
  const auto possible = [&] { return rebuild(log, session.terms()).has_value(); };
  CHECK(possible());
  add(logged::taken_up{});
  CHECK(possible());
  add(logged::handed_over{1000});
  add(logged::taken_up{});
  CHECK_FALSE(possible());
}

TEST_CASE("the time limit of a session went on counting while no process had it") {
  life session(9, false);
  session.act();
  auto late = session.terms();
  late.now_ns += std::chrono::nanoseconds(200s).count();
  const auto made = rebuild(session.log_, late);
  REQUIRE(made.has_value());
  CHECK(late.now - made->accepted > 200s);
  late.now_ns += std::chrono::nanoseconds(100s).count();
  const auto over = rebuild(session.log_, late);
  REQUIRE_FALSE(over.has_value());
  CHECK(over.error() == "its time is over");
}

TEST_CASE("a token opens a log while it is the newest, or the one before until the client sends something") {
  std::string log = log_header();
  const auto add = [&](log_record what) { append_record(log, pack({{}, std::move(what)})); };
  logged::beginning begin{};
  begin.session_id = "x";
  add(begin);
  add(logged::tokens{hash_of("one"), hash_of("")});
  const auto valid = [&](std::string_view token) { return opens(survey(log)->valid, token); };
  CHECK(valid("one"));
  CHECK_FALSE(valid("two"));
  CHECK_FALSE(valid(""));
  add(logged::resumed{{hash_of("two"), hash_of("one")}});
  CHECK(valid("one"));
  CHECK(valid("two"));
  add(logged::frame{std::make_shared<const std::string>("{}")});
  CHECK_FALSE(valid("one"));
  CHECK(valid("two"));
  CHECK(log.find("one") == std::string::npos);
}

TEST_CASE("whether a log knows a token is found out without reading its sound") {
  std::string log = log_header();
  const auto add = [&](log_record what) { append_record(log, pack({{}, std::move(what)})); };
  logged::beginning begin{};
  begin.session_id = "x";
  add(begin);
  add(logged::tokens{hash_of("one"), hash_of("")});
  for (int second = 0; second < 200; ++second)
    add(logged::frame{std::make_shared<const std::string>(std::string(80'000, 'x'))});
  add(logged::taken_up{});
  add(logged::resumed{{hash_of("two"), hash_of("one")}});
  add(logged::taken_up{});
  std::size_t read = 0;
  const log_source source = [&](std::size_t most, std::size_t from) {
    const auto some = log.substr(std::min(from, log.size()), most);
    read += some.size();
    return some;
  };
  CHECK(outline(source, "two").knew_token);
  CHECK(read < log.size() / 10);
  CHECK(outline(source, "one").knew_token);
  CHECK_FALSE(outline(source, "three").knew_token);
  CHECK_FALSE(outline(source, "").knew_token);
  CHECK(outline(source, "").taken_up == 2);
  // Whatever is cut off, what is left is read to its end and no further.
  const auto whole = log;
  for (std::size_t size = 0; size < 2000; ++size) {
    log = whole.substr(0, size);
    const auto known = outline(source, "one");
    CHECK((!known.knew_token || size > 200));
    log = whole.substr(0, whole.size() - size);
    CHECK(outline(source, "one").knew_token);
  }
  log = "no log" + whole;
  CHECK_FALSE(outline(source, "two").knew_token);
}
