#include "protocol/openai/shared/items.hpp"

#include "protocol/codec/event_writer.hpp"
#include "protocol/openai/realtime/chat_prompt.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace parley::protocol::openai;
using parley::protocol::openai::realtime::chat_turn;

namespace {

item text_item(const std::string& id, std::size_t bytes) {
  item one;
  one.id = id;
  one.content.emplace_back().text = std::string(bytes, 'x');
  return one;
}

item sound_item(const std::string& id, std::size_t samples, int parts = 1) {
  item one;
  one.id = id;
  for (int i = 0; i < parts; ++i) {
    auto& part = one.content.emplace_back();
    part.type = item_part::kind::input_audio;
    part.sound = std::make_shared<const std::vector<std::int16_t>>(samples);
  }
  return one;
}

} // namespace

TEST_CASE("for what the server adds, the oldest items make room") {
  item_list items({.items = 4, .text_bytes = 100});
  for (int i = 0; i < 1000; ++i) items.append(text_item("id" + std::to_string(i), 10));
  REQUIRE(items.size() == 4);
  CHECK(items[0].id == "id996");
  CHECK(items.last_id() == "id999");
  CHECK(items.find("id995") == nullptr);
  items.append(text_item("long", 65));
  REQUIRE(items.size() == 4);
  items.append(text_item("longer", 90));
  REQUIRE(items.size() == 1); // 65 and 90 are more than 100
  items.append(text_item("longest", 101));
  REQUIRE(items.size() == 1); // the last one stays, whatever its size
  CHECK(items.last_id() == "longest");
}

TEST_CASE("what a client adds is refused when there is no room, and what is deleted or cut makes some") {
  item_list items({.items = 3, .text_bytes = 100});
  REQUIRE(items.insert(text_item("a", 60), std::nullopt));
  CHECK(items.insert(text_item("b", 41), std::nullopt).error().code == "conversation_too_long");
  CHECK(items.edit("a", [](item& one) { one.content.front().text.resize(59); }));
  CHECK(items.insert(text_item("b", 41), "root").value().empty());
  CHECK(items.insert(text_item("c", 0), "b").value() == "b");
  CHECK(items.insert(text_item("d", 0), std::nullopt).error().code == "conversation_too_long");
  CHECK(items.erase("b"));
  CHECK_FALSE(items.erase("b"));
  CHECK(items.insert(text_item("d", 41), std::nullopt).value() == "a");
  CHECK(items.insert(text_item("d", 0), std::nullopt).error().code == "item_create_duplicate_item_id");
  CHECK(items.insert(text_item("e", 0), "none").error().code == "item_create_invalid_previous_item_id");
}

TEST_CASE("what an answer says counts while it is said") {
  item_list items({.items = 10, .text_bytes = 100});
  items.append(text_item("old", 50));
  items.append(text_item("answer", 40));
  CHECK(items.edit("answer", [](item& one) { one.content.front().text += "12345678901"; }));
  CHECK(items.find("old") == nullptr);
  CHECK(items.find("answer")->content.front().text.size() == 51);
}

TEST_CASE("old sound makes room for new sound, part by part, and its items stay") {
  item_list items({.items = 10, .sound_samples = 100});
  items.append(sound_item("a", 20, 2));
  items.append(sound_item("b", 50));
  REQUIRE(items.insert(sound_item("c", 20), std::nullopt));
  CHECK(items.find("a")->content[0].sound == nullptr);
  CHECK(items.find("a")->content[1].sound != nullptr);
  CHECK(items.find("b")->content[0].sound != nullptr);
  items.append(sound_item("d", 101));
  for (const auto* id : {"a", "b", "c", "d"}) CHECK(items.find(id)->content.back().sound == nullptr);
  items.append(sound_item("e", 100)); // what was forgotten no longer counts
  CHECK(items.find("e")->content[0].sound != nullptr);
}

TEST_CASE("who holds on to items keeps them as they were, and shares their sound") {
  item_list items;
  items.append(sound_item("a", 20));
  items.append(text_item("b", 3));
  const auto before = items.snapshot();
  const auto one = items.share("b");
  CHECK(items.share("none") == nullptr);
  CHECK(before[0]->content[0].sound == items[0].content[0].sound);
  CHECK(items.edit("b", [](item& changed) { changed.content.front().text = "changed"; }));
  CHECK(items.erase("a"));
  CHECK(before[0]->id == "a");
  CHECK(before[1]->content.front().text == "xxx");
  CHECK(one->content.front().text == "xxx");
  CHECK(items[0].content.front().text == "changed");
}

TEST_CASE("a chat turn copies nothing until it is encoded") {
  item_list items;
  items.append(sound_item("a", 160'000));
  const chat_turn turn({}, items.snapshot(), nullptr, "");
  CHECK(items[0].content[0].sound.use_count() == 1); // the item is shared, not copied
  CHECK(turn.bytes() >= 160'000 * 4 / 3 * sizeof(float));
  CHECK(written(turn.make().value()).size() <= turn.bytes() + 1024);
  items.append(sound_item("b", 10));
  CHECK(written(turn.make().value()).size() <= turn.bytes() + 1024); // what came later is not part of it
}
