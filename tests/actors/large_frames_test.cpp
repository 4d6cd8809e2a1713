#include "actors/frame_handle.hpp"
#include "config/settings.hpp"
#include "tests/actors/bare_actors.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace parley;
using namespace parley::actors;
using namespace parley::tests;

namespace {

/// Notes what is done, and waits until so much of it is.
class diary {
public:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(what));
    changed_.notify_all();
  }
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(30), [&] { return all_.size() >= count; }))
      throw std::runtime_error("it was not done");
    return all_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> all_;
};

/// A link that knows on which kind of thread it was told something.
class watching_link final : public recording_link {
public:
  void send(std::shared_ptr<const std::string> frame) override {
    if (frame->find(about_) != std::string::npos) on_large_ = large_frames::here();
    recording_link::send(std::move(frame));
  }
  explicit watching_link(std::string about) : about_(std::move(about)) {}
  bool on_large() const { return on_large_; }

private:
  const std::string about_;
  std::atomic<bool> on_large_ = false;
};

std::string said(std::size_t bytes) {
  return R"({"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":")" +
         std::string(bytes, 'x') + R"("}]}})";
}

} // namespace

TEST_CASE("large frames of a connection keep their order, and one of an owner is at work at a time") {
  diary done;
  std::promise<void> go_on;
  auto released = go_on.get_future().share();
  large_frames frames(2);
  const auto first = frames.open("ann"), second = frames.open("ann"), other = frames.open("bob");
  CHECK(first->idle());
  large_frames::add(first, [&](const auto&) {
    released.wait();
    done.note("first 1");
  });
  for (int i = 2; i < 5; ++i)
    large_frames::add(first, [&, i](const auto&) { done.note("first " + std::to_string(i)); });
  for (int i = 1; i < 4; ++i)
    large_frames::add(second, [&, i](const auto&) { done.note("second " + std::to_string(i)); });
  large_frames::add(other, [&](const auto&) { done.note("other 1"); });
  CHECK(done.wait_for(1) == std::vector<std::string>{"other 1"}); // beside ann's, on the other thread
  CHECK_FALSE(first->idle());
  go_on.set_value();
  // Ann's two connections take turns.
  CHECK(done.wait_for(8) == std::vector<std::string>{"other 1", "first 1", "second 1", "first 2", "second 2", "first 3",
                                                     "second 3", "first 4"});
}

TEST_CASE("an owner with many large frames does not keep another one waiting") {
  diary done;
  std::promise<void> go_on;
  auto released = go_on.get_future().share();
  large_frames frames(1);
  std::vector<std::shared_ptr<large_frames::strand>> many;
  for (int i = 0; i < 20; ++i) {
    many.push_back(frames.open("ann"));
    large_frames::add(many.back(), [&](const auto&) {
      released.wait();
      done.note("ann");
    });
  }
  const auto other = frames.open("bob");
  large_frames::add(other, [&](const auto&) { done.note("bob"); });
  go_on.set_value();
  CHECK(done.wait_for(2)[1] == "bob");
  done.wait_for(21);
}

TEST_CASE("a strand goes on when its turn ends, wherever that is, and after a failure") {
  diary done;
  large_frames frames(1);
  const auto strand = frames.open("ann");
  std::shared_ptr<large_frames::turn> held;
  std::promise<void> taken;
  large_frames::add(strand, [&](auto turn) {
    held = std::move(turn);
    taken.set_value();
  });
  large_frames::add(strand, [&](const auto&) {
    done.note("next");
    throw std::runtime_error("a defect");
  });
  large_frames::add(strand, [&](const auto&) { done.note("last"); });
  taken.get_future().wait();
  const auto other = frames.open("bob");
  large_frames::add(other, [&](const auto&) { done.note("other"); });
  CHECK(done.wait_for(1) == std::vector<std::string>{"other"}); // a turn that is held occupies no thread
  SECTION("it ends") {
    held.reset();
  }
  SECTION("it is given back for another one, which comes first") {
    large_frames::again(std::move(held), [&](const auto&) { done.note("again"); });
    CHECK(done.wait_for(2)[1] == "again");
  }
  CHECK(done.wait_for(3).back() != "other");
  CHECK(eventually([&] { return strand->idle(); }));
}

TEST_CASE("what waits for a thread is dropped when they stop") {
  std::promise<void> at_work, go_on;
  auto released = go_on.get_future().share();
  const auto kept = std::make_shared<int>(1);
  std::shared_ptr<large_frames::strand> strand;
  {
    large_frames frames(1);
    strand = frames.open("ann");
    large_frames::add(strand, [&](const auto&) {
      at_work.set_value();
      released.wait();
    });
    large_frames::add(strand, [kept](const auto&) { FAIL("too late"); });
    at_work.get_future().wait();
    std::thread stops([&] { frames.stop(); });
    CHECK(eventually([&] { // it is being stopped when nothing more is taken
      const auto probe = std::make_shared<int>(1);
      large_frames::add(strand, [probe](const auto&) { FAIL("too late"); });
      return probe.use_count() == 1;
    }));
    go_on.set_value();
    stops.join();
  }
  CHECK(kept.use_count() == 1);
  large_frames::add(strand, [kept](const auto&) { FAIL("too late"); });
  CHECK(kept.use_count() == 1);
}

TEST_CASE("a frame that finds its receiver at work elsewhere is handed back") {
  actors::test::threads on;
  large_frames frames(1);
  const auto strand = frames.open("ann");
  std::promise<void> busy, go_on;
  std::promise<bool> worked_here;
  int times = 0;
  const auto actor = actors::test::spawn_at_rest(on.system, [&](caf::event_based_actor* self) -> caf::behavior {
    return {[&](caf::ok_atom) {
              busy.set_value();
              go_on.get_future().wait();
            },
            [&, self](client_frame& frame) {
              ++times;
              if (handed_back(frame, caf::actor(self))) return;
              worked_here.set_value(large_frames::here());
              CHECK(frame.text == "a frame");
              self->quit();
            }};
  });
  caf::anon_send(actor, caf::ok_atom_v); // on one of CAF's threads
  busy.get_future().wait();
  std::promise<void> passed;
  large_frames::add(strand, [&, actor](auto turn) {
    pass_here(actor, client_frame{"a frame", 0, std::move(turn)});
    passed.set_value();
  });
  passed.get_future().wait();
  go_on.set_value();
  CHECK(worked_here.get_future().get());
  CHECK(times >= 2);
  on.system.await_all_actors_done();
}

TEST_CASE("large messages of every dialect are worked on by threads of their own, and what follows keeps its place") {
  stub_script script;
  test_server core;
  core.add_up(script);
  SECTION("OpenAI's") {
    const auto link = std::make_shared<watching_link>("conversation.item.added");
    connection_info info;
    info.remote = "test";
    info.accepted = std::chrono::steady_clock::now();
    info.realtime = realtime_request{"any", true, openai_dialect::realtime};
    const auto handle = core.core().admit(std::move(info), link);
    handle->text(said(60'000));
    link->next("conversation.item.added");
    CHECK_FALSE(link->on_large());
    handle->text(said(100'000));
    handle->text(R"({"type":"input_audio_buffer.clear"})");
    link->next("conversation.item.added");
    CHECK(link->on_large());
    link->next("input_audio_buffer.cleared"); // not before it
    handle->gone();
  }
  SECTION("Parley's own") {
    const auto link = std::make_shared<watching_link>("\"error\"");
    auto client = core.connect("chat", link);
    client.init();
    const auto append = [](const std::string& more) {
      return R"({"type":"input.append","input":{"messages":7,"more":")" + more + "\"}}";
    };
    client.send_text(append(std::string(10'000, 'x')));
    link->next("error");
    CHECK_FALSE(link->on_large());
    // Much sound may be in few bytes of FLAC.
    client.send_text(append("data:audio/flac;base64,ZkxhQ" + std::string(10'000, 'x')));
    link->next("error");
    CHECK(link->on_large());
    client.send_text(append(std::string(10'000, 'x')));
    link->next("error");
    client.send_text(append(std::string(300'000, 'x')));
    client.send_text(R"({"type":"session.close"})");
    link->next("error");
    CHECK(link->on_large());
    link->next("session.closed");
    client.handle->gone();
  }
  CHECK(core.all_free());
}
