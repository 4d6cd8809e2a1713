#pragma once

#include "protocol/events.hpp"
#include "protocol/json/document.hpp"
#include "protocol/media/compact_sound.hpp"
#include "protocol/openai/shared/budget.hpp"
#include "protocol/openai/shared/fault.hpp"
#include "protocol/openai/shared/field_set.hpp"
#include "protocol/speech/sound.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The items of a conversation and their order.
namespace parley::protocol::openai {

struct item_part {
  enum class kind : std::uint8_t { input_text, input_audio, input_image, output_text, output_audio };
  kind type = kind::input_text;
  std::string text;              ///< for sound: its transcript, if known
  bool has_transcript = true;    ///< false = null on the wire
  compact_sound sound = nullptr; ///< input_audio
  image_file picture;            ///< input_image
  std::size_t picture_bytes = 0; ///< input_image: as it was written, which counts
  bool is_jpeg = false;          ///< input_image: in the format that video takes
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
  item_role role = item_role::user;                       ///< of a message
  std::vector<item_part> content{};                       ///< of a message
  std::string name{};                                     ///< of a function call
  std::string call_id{};                                  ///< of a function call and its output
  std::string payload{};                                  ///< a call's arguments, or the output
  double sound_ms = 0;                                    ///< of an answer: how much sound was sent
  std::shared_ptr<const base::byte_budget::share> held{}; ///< for its text, if a client wrote much
};

/// Whether it is what a camera sees: a user's message of nothing but JPEG pictures.
bool is_camera_view(const item& one);

/// Bytes of what it says.
std::size_t text_of(const item& one);

/// The item as JSON, without its sound.
std::string encode_item(const item& of);

/// An item that a client creates. `id` stays empty if the client gave none. `coding`: of sound in it, which `sound` is
/// charged for.
item read_item(field_set& from, const speech::sound_format& coding, event_sound& sound);

/// A function call's output refers to a call that is not there. `path`: of the field.
fault unknown_call(std::string_view call_id, std::string_view path);

/// An item that others may hold on to, and that never changes.
using kept_item = std::shared_ptr<const item>;

/// What a conversation may hold; the media of the oldest items are forgotten above these limits.
struct item_limits {
  std::size_t items = 1024;
  std::size_t sound_samples = std::size_t{16'000} * 300; ///< 3,000 of the model's tokens
  std::size_t picture_bytes = 32u << 20;                 ///< as base64
  std::size_t text_bytes = most_item_text;
};

/// A conversation's items in order. Of what a client adds it refuses what it cannot hold, except that old sound and pictures
/// make room; for what the server adds, the oldest items do.
class item_list {
public:
  explicit item_list(item_limits limits = {}) : limits_(limits) {}

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  const item& operator[](std::size_t at) const { return *items_[at].held; }

  /// Null if there is none with this id. Valid until the list changes.
  const item* find(std::string_view id) const;

  /// Whether there is a function call with this id, which a result may refer to.
  bool has_call(std::string_view call_id) const;

  /// All items, or one (null = there is none), as they are now.
  std::vector<kept_item> snapshot();
  kept_item share(std::string_view id);

  /// Changes the item with this id; `change` gets it. Returns whether there is one.
  template<class Change>
  bool edit(std::string_view id, Change change) {
    const auto at = locate(id);
    if (at == items_.end()) return false;
    auto& one = own(*at);
    uncount(one);
    change(one);
    count(one);
    make_room();
    return true;
  }

  /// The id of the last item; empty if there is none.
  std::string last_id() const { return items_.empty() ? std::string() : items_.back().held->id; }

  /// Why there is no room for it, if there is none.
  std::optional<fault> judge(const item& one) const;

  /// Inserts behind the item `previous`: absent = at the end, "root" = at the front. Returns the id of the item before
  /// it, empty if it is the first.
  result<std::string> insert(item one, const std::optional<std::string>& previous);

  /// Adds the server's own item at the end.
  void append(item one);

  /// Returns whether there was such an item.
  bool erase(std::string_view id);

private:
  struct slot {
    std::shared_ptr<item> held;
    bool shared = false; ///< somebody may hold on to it: changes go to a copy
  };
  using slots = std::deque<slot>;

  slots::iterator locate(std::string_view id);
  static item& own(slot& of);
  void count(const item& one);
  void uncount(const item& one);
  void make_room();
  void forget_old_media();

  item_limits limits_;
  slots items_;
  // Of all items together.
  std::size_t text_bytes_ = 0;
  std::size_t sound_samples_ = 0;
  std::size_t picture_bytes_ = 0;
};

/// `text` up to about this share of it, at a word's end.
std::string cut_words(const std::string& text, double share);

} // namespace parley::protocol::openai
