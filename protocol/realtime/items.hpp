#pragma once

#include "protocol/json/document.hpp"
#include "protocol/media/compact_sound.hpp"
#include "protocol/realtime/fault.hpp"
#include "protocol/realtime/field_set.hpp"
#include "protocol/realtime/sound.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The items of a conversation and their order.
namespace parley::protocol::realtime {

struct item_part {
  enum class kind : std::uint8_t { input_text, input_audio, input_image, output_text, output_audio };
  kind type = kind::input_text;
  std::string text;                           ///< for sound: its transcript, if known
  bool has_transcript = true;                 ///< false = null on the wire
  compact_sound sound = nullptr;              ///< input_audio
  std::shared_ptr<const std::string> picture; ///< input_image: the data URL, as it stood between its quotes
  bool is_jpeg = false;                       ///< input_image: in the format that video takes
  bool low_detail = false;

  bool has_media() const { return sound || picture; }
};

enum class item_status : std::uint8_t { in_progress, completed, incomplete };
enum class item_kind : std::uint8_t { message, function_call, function_call_output };
enum class item_role : std::uint8_t { system, user, assistant };

struct item {
  std::string id;
  item_kind kind = item_kind::message;
  item_status status = item_status::completed;
  item_role role = item_role::user; ///< of a message
  std::vector<item_part> content{}; ///< of a message
  std::string name{};               ///< of a function call
  std::string call_id{};            ///< of a function call and its output
  std::string payload{};            ///< a call's arguments, or the output
  double sound_ms = 0;              ///< of an answer: how much sound was sent
};

/// Whether it is what a camera sees: a user's message of nothing but JPEG pictures.
bool is_camera_view(const item& one);

/// The item as JSON, without its sound.
std::string encode_item(const item& of);

/// An item that a client creates. `id` stays empty if the client gave none. `coding`: of sound in it.
item read_item(field_set& from, const sound_format& coding);

/// What a conversation may hold; the media of the oldest items are forgotten above these limits.
struct item_limits {
  std::size_t items = 1024;
  std::size_t sound_samples = std::size_t{16'000} * 300; ///< 3,000 of the model's tokens
  std::size_t picture_bytes = 32u << 20;                 ///< as base64
  std::size_t text_bytes = 512u << 10;
};

/// A conversation's items in order. Refuses what it cannot hold, except that old sound and pictures make room.
class item_list {
public:
  explicit item_list(item_limits limits = {}) : limits_(limits) {}

  const std::vector<item>& all() const { return items_; }
  item* find(std::string_view id);

  /// The id of the last item; empty if there is none.
  std::string last_id() const { return items_.empty() ? std::string() : items_.back().id; }

  /// Inserts behind the item `previous`: absent = at the end, "root" = at the front. Returns the id of the item before
  /// it, empty if it is the first.
  result<std::string> insert(item one, const std::optional<std::string>& previous);

  /// Adds the server's own item at the end, whatever the limits.
  void append(item one);

  /// Returns whether there was such an item.
  bool erase(std::string_view id);

private:
  void forget_old_media();

  item_limits limits_;
  std::vector<item> items_;
};

} // namespace parley::protocol::realtime
