#include "actors/session/work_trial.hpp"

#include <catch2/catch.hpp>

namespace parley::actors {

TEST_CASE("two workers that die of the same work are too many; of work that was answered, none") {
  work_trial trial;
  CHECK_FALSE(trial.lost(false)); // the worker had no work of this session
  CHECK_FALSE(trial.needed_for_work());
  trial.sent();
  CHECK_FALSE(trial.lost(false));
  trial.forget();
  CHECK(trial.needed_for_work());
  trial.sent();
  trial.answered();
  CHECK_FALSE(trial.needed_for_work());
  trial.sent();
  CHECK_FALSE(trial.lost(false));
  trial.forget();
  trial.sent();
  CHECK(trial.lost(false));
}

TEST_CASE("replays are counted for themselves") {
  work_trial trial;
  trial.sent();
  CHECK_FALSE(trial.lost(false));
  trial.forget();
  trial.sent();
  CHECK_FALSE(trial.lost(true));
  trial.forget();
  CHECK(trial.needed_for_replay());
  trial.sent();
  trial.replayed();
  CHECK_FALSE(trial.needed_for_replay());
  CHECK(trial.needed_for_work()); // the work itself was not answered
}

TEST_CASE("what is retried waits for its trial, in order") {
  work_trial trial;
  trial.sent();
  trial.lost(false);
  trial.forget();
  trial.asked();
  CHECK(trial.pending());
  CHECK_FALSE(trial.needed_for_work()); // a trial is already requested
  trial.hold(conversation::cut{1});
  trial.hold(conversation::close_session{1});
  CHECK(trial.grant());
  CHECK_FALSE(trial.grant());
  CHECK_FALSE(trial.pending());
  const auto held = trial.release();
  REQUIRE(held.size() == 2);
  CHECK(std::holds_alternative<conversation::cut>(held[0]));
  CHECK(trial.release().empty());
  CHECK(trial.end());
  CHECK_FALSE(trial.end());
}

TEST_CASE("a trial goes with its slot") {
  work_trial trial;
  trial.asked();
  trial.hold(conversation::cut{1});
  trial.forget();
  CHECK_FALSE(trial.pending());
  CHECK_FALSE(trial.end());
  CHECK(trial.release().empty());
}

} // namespace parley::actors
