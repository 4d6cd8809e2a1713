#include "inference/text/tokenizer.hpp"

#include "base/utf8.hpp"
#include "inference/text/pretokenizer.hpp"
#include "inference/text/unicode.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <random>

using namespace parley::inference;

namespace {

const tokenizer& tiny() {
  static const auto t = tokenizer::open("tests/data/checkpoints/tiny");
  return t;
}

const tokenizer& full() {
  static const auto t = tokenizer::open("tests/data/goldens/thinker/tokenizer_full");
  return t;
}

std::vector<std::string> words(std::string_view text) {
  auto views = text::pretokenize(text);
  return {views.begin(), views.end()};
}

/// All kinds of characters that the pre-tokenizer distinguishes, and some combining ones.
std::string random_text(std::mt19937& random, int characters) {
  static constexpr char32_t pool[] = {U'a',   U'T',    U's',   U'\'',  U'0',   U' ',    U' ',  U'\n', U'\r',
                                      U'\t',  U'.',    U'<',   U'|',   U'>',   U'e',    0x301, 0x327, 0xE9,
                                      0x4E2D, 0x1F600, 0x200D, 0xA0,   0x3000, 0x17F,   0x661, 0xBD,  0x1100,
                                      0x1161, 0x11A8,  0x85,   0x2028, 0xFFFD, 0x10FFFF};
  std::string result;
  for (int i = 0; i < characters; ++i) parley::base::utf8::append(pool[random() % std::size(pool)], result);
  return result;
}

/// The rule of the reference (utils.py:309): decode everything each time, and hold back U+FFFD at the end.
std::string literal_stream_step(const tokenizer& t, const std::vector<token_id>& ids, std::size_t& emitted) {
  auto text = t.decode(ids);
  while (text.ends_with("\xEF\xBF\xBD")) text.erase(text.size() - 3);
  if (text.size() <= emitted) return {};
  auto fresh = text.substr(emitted);
  emitted = text.size();
  return fresh;
}

} // namespace

TEST_CASE("the pre-tokenizer cuts as its pattern says") {
  using list = std::vector<std::string>;
  CHECK(words("it's we'll THEY'RE") == list{"it", "'s", " we", "'ll", " THEY", "'RE"});
  CHECK(words("'\xC5\xBFo") == list{"'\xC5\xBF", "o"}); // the long s folds to s
  CHECK(words("'hello") == list{"'hello"});
  CHECK(words("a1234b") == list{"a", "1", "2", "3", "4", "b"});
  CHECK(words(" 42") == list{" ", "4", "2"});
  CHECK(words("x  y") == list{"x", " ", " y"});
  CHECK(words("x \n\n  y") == list{"x", " \n\n", " ", " y"});
  CHECK(words("x  ") == list{"x", "  "});
  CHECK(words("a ...\n\nb") == list{"a", " ...\n\n", "b"});
  CHECK(words("\tx") == list{"\tx"});
  CHECK(words("\nx") == list{"\n", "x"});
  CHECK(words(" \r ") == list{" \r", " "});
  CHECK(words("").empty());
}

TEST_CASE("NFC composes, reorders and leaves the rest") {
  CHECK(text::nfc("e\xCC\x81") == "\xC3\xA9");
  CHECK(text::nfc("a\xCC\x81\xCC\xA7") == text::nfc("a\xCC\xA7\xCC\x81"));
  CHECK(text::nfc("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8") == "\xEA\xB0\x81");
  CHECK(text::nfc("plain") == "plain");
  // U+09FE is newer than the reference's tables, so U+0359 does not move in front of it.
  CHECK(text::nfc("\xE0\xA7\xBE\xCD\x99") == "\xE0\xA7\xBE\xCD\x99");
  CHECK(text::nfc("\xEA\xB0\xB8\xE1\x86\xA7") == "\xEA\xB0\xB8\xE1\x86\xA7"); // U+11A7 is not a final consonant
  CHECK(text::nfc(std::string("a\0\xC3\xA9", 4)) == std::string("a\0\xC3\xA9", 4));
}

TEST_CASE("decoding undoes encoding up to NFC") {
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    auto text = random_text(random, 1 + static_cast<int>(random() % 40));
    for (const auto* t : {&tiny(), &full()}) {
      auto ids = t->encode(text);
      CHECK(t->decode(ids) == text::nfc(text));
      std::string joined;
      for (auto word : text::pretokenize(text)) joined += word;
      CHECK(joined == text);
    }
  }
}

TEST_CASE("added tokens are found before anything else, the longest first") {
  auto ids = tiny().encode("<|im_start|>user<|tts_bos|><|tts_bo");
  CHECK(ids.front() == tiny().id("<|im_start|>"));
  CHECK(std::count(ids.begin(), ids.end(), tiny().id("<|tts_bos|>")) == 1);
  CHECK(tiny().decode(ids, true) == "user<|tts_bo");
  CHECK(tiny().is_special(tiny().id("<unit>")));
  CHECK_FALSE(tiny().is_special(tiny().id("<think>")));
  CHECK(tiny().decode(std::vector{tiny().id("<think>"), tiny().id("<unit>")}, true) == "<think>");
}

TEST_CASE("lookups by text") {
  CHECK(tiny().id("no such token") == tiny().unk());
  CHECK_FALSE(tiny().find("no such token"));
  CHECK(tiny().id("<|im_end|>") == tiny().eos());
  CHECK(tiny().decode(std::vector<token_id>{-1, 1 << 20}) == "");
}

TEST_CASE("streaming text is what decoding everything each time gives") {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<token_id> ids;
    stream_decoder decoder(tiny());
    std::size_t emitted = 0;
    std::string joined;
    for (int step = 0; step < 12; ++step) {
      std::vector<token_id> fresh(random() % 4);
      // Mostly single bytes, so that characters are cut apart and broken.
      for (auto& id : fresh) id = static_cast<token_id>(random() % (random() % 3 == 0 ? 1800 : 256));
      ids.insert(ids.end(), fresh.begin(), fresh.end());
      auto mine = decoder.push(fresh);
      REQUIRE(mine == literal_stream_step(tiny(), ids, emitted));
      joined += mine;
    }
    CHECK(joined + decoder.finish() == tiny().decode(ids));
  }
}

TEST_CASE("hostile text costs no more than its length") {
  auto begin = std::chrono::steady_clock::now();
  auto repeat = [](std::string_view part, int times) {
    std::string result;
    for (int i = 0; i < times; ++i) result += part;
    return result;
  };
  CHECK(full().encode(repeat("a", 200000)).size() > 1000);
  CHECK(full().encode(repeat(" ", 200000)).size() > 10);
  CHECK(full().encode(repeat("<", 200000)).size() > 1000);
  CHECK(full().encode(repeat("<|im_start", 20000)).size() > 1000);
  CHECK(full().encode("a" + repeat("\xCC\x81\xCC\xA7", 50000)).size() > 1000);
  CHECK(full().encode(repeat("\xFF", 100000)).size() > 1000);
  // Quadratic code would take minutes for any of these; the limit allows for sanitizers and busy machines.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

TEST_CASE("a broken tokenizer is refused with the file's name") {
  parley::tests::temporary_folder folder;
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("vocab.json"));
  folder.write("vocab.json", R"({"a": "b"})");
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("vocab.json"));
  folder.write("vocab.json", R"(["a", 1])");
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("vocab.json: token 1 is not a string"));
  folder.write("vocab.json", R"({"a": 0})");
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("merges.txt"));
  folder.write("merges.txt", "a b\n");
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("tokenizer_config.json"));
  folder.write("tokenizer_config.json", "{}");
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("no added_tokens_decoder"));
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {}})");
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("not in vocab.json"));
  folder.write("vocab.json", R"({"a": 99999999999})");
  CHECK_THROWS_WITH(tokenizer::open(folder.path()), Catch::Contains("out of range"));
}

TEST_CASE("a text may be cut into no more tokens than are wanted, and one") {
  std::mt19937 random(9);
  for (auto round = 0; round < 200; ++round) {
    auto text = random_text(random, 60);
    if (round % 2) text += "<|im_end|>" + random_text(random, 20);
    const auto all = full().encode(text);
    for (const auto most : {std::size_t{0}, std::size_t{1}, all.size() / 2, all.size(), all.size() + 5}) {
      const auto some = full().encode(text, {}, most);
      CHECK(some.size() > std::min(most, all.size() - std::min<std::size_t>(all.size(), 1)));
      CHECK(some.size() <= all.size());
      CHECK(std::equal(some.begin(), some.end(), all.begin()));
      if (most >= all.size()) CHECK(some == all);
    }
  }
}
