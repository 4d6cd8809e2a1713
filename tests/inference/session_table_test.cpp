#include "inference/engine/session_table.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>
#include <string>
#include <vector>

// How tasks follow each other, and what happens to those that fail; needs no model.
using namespace parley::inference;

namespace {

constexpr transition transitions[] = {{stage::idle, stage::decode}, {stage::decode, stage::idle}};

using lines = std::vector<std::string>;

/// A task that decodes until told otherwise, and records what happens to it.
class noted_task final : public task {
public:
  noted_task(session& of, std::optional<std::uint64_t> number, lines& notes)
      : task(of, transitions), number_(number), notes_(notes) {}
  ~noted_task() override { note("gone"); }

  work_kind kind() const override { return work_kind::chat; }
  void begin() override {
    note("begins");
    if (begin_throws) throw std::runtime_error("it can't begin");
    need(stage::decode);
  }
  std::optional<std::uint64_t> number() const override { return number_; }
  void take_back() override {
    note("taken back");
    if (take_back_throws) throw std::runtime_error("it can't be taken back");
  }

  void end() { set_finished(); }
  void object() { fail(failure_kind::invalid, "no"); }

  bool begin_throws = false, take_back_throws = false;

private:
  void note(const std::string& what) { notes_.push_back(std::to_string(number_.value_or(0)) + " " + what); }

  std::optional<std::uint64_t> number_;
  lines& notes_;
};

struct table {
  llm::kv_pool pool = small_pool();
  lines notes;
  engine::sink tell = [this](event&& e) {
    const auto& f = std::get<failed>(e);
    notes.push_back(std::to_string(f.number) + " failed: " + f.message);
  };
  session_table sessions{tell};

  static llm::kv_pool small_pool() {
    llm_config config;
    config.layers = 1;
    config.kv_heads = 1;
    config.head_dim = 4;
    return {config, 4, 64, at::kFloat, at::kCPU};
  }

  session& open(session_id id) { return sessions.add(std::make_unique<session>(id, 1, pool.open())); }

  noted_task& give(session& s, std::optional<std::uint64_t> number) {
    auto made = std::make_unique<noted_task>(s, number, notes);
    auto& t = *made;
    sessions.enqueue(s, std::move(made));
    return t;
  }

  lines since() { return std::exchange(notes, {}); }
};

template<class F>
void step(table& of, noted_task& t, F f) {
  of.sessions.step(t, [&](task& same) {
    CHECK(&same == &t);
    f(t);
  });
}

} // namespace

TEST_CASE("a task begins when those before it are done") {
  table all;
  auto& s = all.open(1);
  auto& first = all.give(s, 1);
  auto& second = all.give(s, 2);
  CHECK(all.since() == lines{"1 begins"});
  CHECK(all.sessions.needing(stage::decode, 1) == &first);
  CHECK(all.sessions.needing(stage::hear, 1) == nullptr);
  step(all, first, [](noted_task& t) { t.end(); });
  CHECK(all.since() == lines{"1 gone", "2 begins"});
  step(all, second, [](noted_task& t) { t.end(); });
  CHECK(all.since() == lines{"2 gone"});
  CHECK(all.sessions.needing(stage::decode, 1) == nullptr);
  CHECK(all.sessions.find(1) == &s);
}

TEST_CASE("a task that objects or throws fails alone, and the next one begins") {
  table all;
  auto& s = all.open(1);
  auto& other = all.give(all.open(2), 9);
  auto& first = all.give(s, 1);
  auto& second = all.give(s, 2);
  auto& third = all.give(s, 3);
  third.begin_throws = true;
  all.give(s, 4);
  all.since();
  step(all, first, [](noted_task& t) { t.object(); });
  CHECK(all.since() == lines{"1 taken back", "1 failed: no", "1 gone", "2 begins"});
  step(all, second, [](noted_task&) { throw std::runtime_error("broken"); });
  CHECK(all.since() == lines{"2 taken back", "2 failed: broken", "2 gone", "3 begins", "3 taken back",
                             "3 failed: it can't begin", "3 gone", "4 begins"});
  CHECK(all.sessions.needing(stage::decode, 2) == &other);
}

TEST_CASE("a session ends with a task that is not answered or can't be taken back, once the pass is over") {
  for (const auto answered : {false, true}) {
    table all;
    auto& s = all.open(1);
    all.give(all.open(2), 9);
    auto& first = all.give(s, answered ? std::optional<std::uint64_t>(1) : std::nullopt);
    first.take_back_throws = true;
    all.give(s, 2);
    all.since();
    step(all, first, [](noted_task&) { throw std::runtime_error("broken"); });
    if (answered)
      CHECK(all.since() == lines{"1 taken back", "1 failed: broken", "2 failed: broken"});
    else
      CHECK(all.since() == lines{"0 failed: broken", "2 failed: broken"});
    CHECK(all.sessions.find(1) == nullptr);
    CHECK(all.sessions.size() == 2);
    step(all, first, [](noted_task&) { FAIL("its session is over"); });
    all.sessions.bury();
    CHECK(all.sessions.size() == 1);
    CHECK(all.since() == lines{"2 gone", (answered ? "1 gone" : "0 gone")});
    CHECK(all.sessions.needing(stage::decode, 2) != nullptr);
  }
}
