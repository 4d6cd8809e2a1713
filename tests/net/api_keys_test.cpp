#include "net/access/api_keys.hpp"

#include "config/load.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;
using parley::tests::temporary_folder;

namespace {

// sha256sum of "alpha" and "beta"
constexpr auto alpha = "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
constexpr auto beta = "F44E64E75F3948E9F73F8DFA94721C4CE8CBB4F265C4790C702B2D41CFBF2753";

std::string complaint_of(const std::string& content) {
  const temporary_folder folder;
  try {
    api_keys::load(folder.write("keys", content));
  } catch (const parley::config::settings_error& e) {
    return std::string(e.what()).substr(folder.path().string().size());
  }
  return "none";
}

} // namespace

TEST_CASE("a key may have limits of its own") {
  const temporary_folder folder;
  const auto keys = api_keys::load(folder.write(
      "keys", std::string("ann ") + alpha + " minutes_per_day=60 tokens_per_month=1000000 sessions=2 # a pupil\nbob " +
                  beta + " starts_per_minute=6 admin\n"));
  CHECK(keys.find("alpha")->limits == key_limits{{60, 0, 0, 1'000'000}, 2, 0});
  CHECK_FALSE(keys.find("alpha")->admin);
  CHECK(keys.find("beta")->admin);
  CHECK(keys.limits().at("bob") == key_limits{{}, 0, 6});
  const auto wrong = [](const std::string& word) { return complaint_of(std::string("ann ") + alpha + " " + word); };
  CHECK(wrong("minutes_per_week=5")
            .starts_with("/keys:1: only \"admin\" may follow the hash, and limits: minutes_per_day=N"));
  for (const char* word : {"sessions=", "sessions=0", "sessions=-1", "sessions=2.5", "sessions=9999999999999999999"})
    CHECK(wrong(word) == "/keys:1: sessions is a number from 1 on");
  CHECK(wrong("sessions=1 sessions=2") == "/keys:1: sessions is set twice");
  CHECK(wrong("sessions").starts_with("/keys:1: only \"admin\" may follow"));
  CHECK(wrong("admin admin").starts_with("/keys:1: only \"admin\" may follow"));
}

TEST_CASE("a key is known by its hash") {
  const temporary_folder folder;
  const auto keys = api_keys::load(
      folder.write("keys", std::string("# people\n\nann ") + alpha + "\n  bob\t" + beta + " admin # the boss\n"));
  CHECK(keys.asked());
  REQUIRE(keys.find("alpha"));
  CHECK(keys.find("alpha")->name == "ann");
  CHECK_FALSE(keys.find("alpha")->admin);
  REQUIRE(keys.find("beta"));
  CHECK(keys.find("beta")->name == "bob");
  CHECK(keys.find("beta")->admin);
  for (const char* wrong : {"", "alph", "alpha ", "Alpha", alpha}) CHECK_FALSE(keys.find(wrong));
}

TEST_CASE("without a file no key is asked, with an empty one nobody is let in") {
  CHECK_FALSE(api_keys().asked());
  const temporary_folder folder;
  const auto none = api_keys::load(folder.write("keys", "# nobody yet\n"));
  CHECK(none.asked());
  CHECK_FALSE(none.find("alpha"));
}

TEST_CASE("a wrong line is refused with its number") {
  CHECK(complaint_of("ann secret\n").starts_with("/keys:1: a key is NAME HASH"));
  CHECK(complaint_of("# x\nann\n").starts_with("/keys:2: a key is NAME HASH"));
  CHECK(complaint_of(std::string("ann ") + alpha + " boss\n").starts_with("/keys:1: only \"admin\" may follow"));
  CHECK(complaint_of(std::string("ann ") + alpha + "\nann " + beta + "\n").starts_with("/keys:2: the name ann"));
  CHECK_THROWS_WITH(api_keys::load("no/such/keys"), "auth.keys_file: no/such/keys cannot be read");
}

TEST_CASE("a list says which of its keys another one has not") {
  const temporary_folder folder;
  const auto list = [&](const std::string& content) { return api_keys::load(folder.write("keys", content)); };
  const std::string ann = std::string("ann ") + alpha + "\n";
  const auto both = list(ann + "bob " + beta + "\n");
  using names = std::vector<std::string>;
  CHECK(both.size() == 2);
  CHECK(both.missing_in(both).empty());
  CHECK(both.missing_in(list(ann)) == names{"bob"});
  CHECK(list(ann).missing_in(both).empty());
  CHECK(both.missing_in(list("")) == names{"ann", "bob"});
  CHECK(list(ann).missing_in(list(std::string("ann ") + beta + "\n")) == names{"ann"}); // the name has another key
  CHECK(list(ann).missing_in(list(std::string("ann ") + alpha + " admin\n")).empty());
}
