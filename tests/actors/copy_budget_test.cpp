#include "actors/log/copy_budget.hpp"

#include "actors/log/log_format.hpp"
#include "actors/log/log_record.hpp"
#include "actors/log/log_store.hpp"
#include "tests/actors/test_server.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <prometheus/registry.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <future>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

using namespace parley;
using namespace parley::actors;

// How much of other gateways' logs is kept.

namespace {

constexpr std::size_t kib = 1024;

/// A gateway's store, and what it answers to those who send it logs.
struct keeper {
  keeper(const std::filesystem::path& in, std::size_t most) : folder(in), store(options_for(in, most), counted) {}

  static log_store::options options_for(const std::filesystem::path& folder, std::size_t most) {
    log_store::options with;
    with.folder = folder;
    with.most_copied = most;
    with.resume = std::chrono::hours(1);
    with.open_for_clients = [] { return true; };
    with.node = 1;
    with.disowned = [](const std::string&) {};
    return with;
  }

  static log_piece beginning(const std::string& id) {
    logged::beginning first{};
    first.session_id = id;
    std::string log = log_header();
    append_record(log, pack({{}, first}));
    return {{id, 0}, 0, 0, std::move(log), false};
  }

  /// Sends a piece and waits for the answer; whether it was kept.
  bool send(std::uint64_t link, log_piece piece) {
    std::promise<void> over;
    bool refused = false;
    store.receive({link + 100, link}, std::move(piece), [&](const piece_answer& answer) {
      refused |= std::holds_alternative<log_refused>(answer);
      if (std::holds_alternative<piece_taken>(answer)) over.set_value();
    });
    REQUIRE(over.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    return !refused;
  }

  /// A session's log in pieces of 64 KiB, until one is refused; how many were kept.
  int fill(std::uint64_t link, const std::string& id) {
    auto piece = beginning(id);
    if (!send(link, piece)) return -1;
    int kept = 0;
    for (auto at = piece.bytes.size(); kept < 1000; ++kept) {
      log_piece more{{id, 0}, 0, at, std::string(64 * kib, 'x'), false};
      at += more.bytes.size();
      if (!send(link, std::move(more))) break;
    }
    return kept;
  }

  std::uintmax_t bytes_on_disk() const {
    std::uintmax_t all = 0;
    for (const auto& each : std::filesystem::directory_iterator(folder)) all += each.file_size();
    return all;
  }

  std::filesystem::path folder;
  prometheus::Registry registry;
  log_meter counted{registry};
  log_store store;
};

} // namespace

TEST_CASE("one sender gets half of the room for copies, one log no more than can be taken up, and small ones count") {
  copy_budget of(500 * kib, 1000 * kib);
  CHECK(of.add("a", 1, 400 * kib));
  CHECK_FALSE(of.add("a", 1, 101 * kib)); // longer than one may be
  CHECK_FALSE(of.add("b", 1, 101 * kib)); // more than half
  CHECK(of.add("b", 1, 100 * kib));
  CHECK(of.add("c", 2, 500 * kib));
  CHECK(of.bytes() == 1000 * kib);
  CHECK_FALSE(of.add("d", 3, 1));
  of.remove("a");
  of.remove("unknown");
  CHECK(of.add("d", 3, 1));
  CHECK(of.bytes() == 600 * kib + copy_budget::least_bytes);
  CHECK(of.add("d", 3, copy_budget::least_bytes - 1)); // was counted already
  CHECK(of.bytes() == 600 * kib + copy_budget::least_bytes);
  of.count("e", 0, 2000 * kib); // is there, whatever is allowed
  CHECK_FALSE(of.add("f", 4, 1));
  for (const auto* each : {"b", "c", "d", "e"}) of.remove(each);
  CHECK(of.bytes() == 0);

  copy_budget many(kib, std::size_t{1} << 40);
  for (std::size_t i = 0; i < copy_budget::most_logs; ++i) CHECK(many.add(std::to_string(i), 1, 1));
  CHECK_FALSE(many.add("one more", 1, 1));
  CHECK(many.add("another's", 2, 1));
}

TEST_CASE("a gateway that sends logs without an end fills its part of the disk, and no more") {
  const tests::temporary_folder folder;
  {
    keeper of(folder.path() / "kept", 1024 * kib);
    CHECK(of.send(2, keeper::beginning("other")));
    CHECK(of.fill(1, "endless") == 7);    // and the beginning: half a MiB
    CHECK(of.bytes_on_disk() < 16 * kib); // what was refused is gone
    CHECK(of.fill(1, "again") == 7);
    std::size_t small = 0;
    while (small < 1000 && of.send(1, keeper::beginning("small" + std::to_string(small)))) ++small;
    CHECK(small == 512 * kib / copy_budget::least_bytes);
    CHECK(of.bytes_on_disk() < 1024 * kib);
    CHECK(of.send(2, {{"other", 0}, 0, keeper::beginning("other").bytes.size(), "more", false})); // the other's remain
    of.store.sender_gone(1);
  }
  // The next process counts what is there.
  keeper next(folder.path() / "kept", 600 * kib);
  CHECK(next.fill(3, "endless") < 2);
}

TEST_CASE("pieces that nobody has asked for do not wait in memory without an end") {
  const tests::temporary_folder folder;
  keeper of(folder.path() / "kept", std::size_t{1} << 30);
  auto first = keeper::beginning("x");
  REQUIRE(of.send(1, first));
  std::mutex mutex;
  std::size_t refused = 0;
  std::size_t taken = 0;
  constexpr std::size_t pieces = 4000;
  std::promise<void> held;
  auto go_on = held.get_future().share();
  // The readers' thread waits here, as for a slow disk.
  REQUIRE(of.store.take_up({"unknown", "", ""}, {}, [go_on](const auto&) { go_on.wait(); }));
  for (std::size_t i = 0; i < pieces; ++i)
    of.store.receive({101, 1}, {{"x", 0}, 0, first.bytes.size(), std::string(largest_piece, 'x'), false},
                     [&](const piece_answer& answer) {
                       const std::lock_guard lock(mutex);
                       std::holds_alternative<log_refused>(answer) ? ++refused : ++taken;
                     });
  {
    const std::lock_guard lock(mutex);
    CHECK(refused > pieces - 100);
    CHECK(taken == 0);
  }
  held.set_value();
  CHECK(tests::eventually([&] {
    const std::lock_guard lock(mutex);
    return taken > 0 && taken + refused >= pieces;
  }));
}

TEST_CASE("an id that leads out of the folder is refused, and nothing is written") {
  const tests::temporary_folder folder;
  folder.write("precious.copy", "of somebody else");
  keeper of(folder.path() / "kept", 1024 * kib);
  CHECK_FALSE(plausible(keeper::beginning("../precious")));
  CHECK_FALSE(plausible(log_piece{{"x", 0}, 0, 0, std::string(largest_piece + 1, 'x'), false}));
  CHECK_FALSE(plausible(log_piece{{"x", 0}, 0, std::uint64_t{1} << 50, "x", false}));
  CHECK(plausible(keeper::beginning("x")));
  CHECK_FALSE(of.send(1, keeper::beginning("../precious")));
  CHECK(std::filesystem::file_size(folder.path() / "precious.copy") == 16);
}
