#include "inference/vision/decode.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <optional>
#include <png.h>
#include <string>
#include <zlib.h>

namespace parley::inference::vision {

namespace {

/// libpng leaves a failed call by longjmp, so nothing with a destructor may exist between `setjmp` and the library.
class png_reader {
public:
  png_reader(std::string_view file, const still_wanted& wanted) : left_(file), wanted_(wanted) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, [](png_structp, png_const_charp) {});
    if (png_) info_ = png_create_info_struct(png_);
  }

  ~png_reader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  png_reader(const png_reader&) = delete;
  png_reader& operator=(const png_reader&) = delete;

  bool read_header() {
    if (!info_) return false;
    if (setjmp(way_out_)) return false;
    png_set_read_fn(png_, this, [](png_structp png, png_bytep to, std::size_t count) {
      auto& left = static_cast<png_reader*>(png_get_io_ptr(png))->left_;
      if (left.size() < count) png_error(png, "the file is cut short");
      std::memcpy(to, left.data(), count);
      left.remove_prefix(count);
    });
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1); // -1: known chunks too, except pixels
    png_set_read_status_fn(png_, [](png_structp png, png_uint_32 /*row*/, int /*pass*/) {
      if (!static_cast<png_reader*>(png_get_io_ptr(png))->is_wanted()) png_error(png, "nobody wants it any more");
    });
    // The caller checks the size, because the library would only say "invalid".
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(png_, info_);
    return true;
  }

  /// `rows` must point to a picture of the size in the header.
  bool read_pixels(png_bytepp rows) {
    if (setjmp(way_out_)) return false;
    png_set_palette_to_rgb(png_);
    if (png_get_bit_depth(png_, info_) < 8) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != std::size_t{3} * width()) png_error(png_, "unknown kind of pixels");
    png_read_image(png_, rows);
    return true;
  }

  /// Size of the filtered rows that the file compresses; 0 if it is interlaced. Call it before `read_pixels`.
  std::size_t filtered_bytes() const {
    if (png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE) return 0;
    return (png_get_rowbytes(png_, info_) + 1) * height();
  }

  png_uint_32 width() const { return png_get_image_width(png_, info_); }
  png_uint_32 height() const { return png_get_image_height(png_, info_); }
  const char* message() const { return message_; }
  bool given_up() const { return given_up_; } ///< nobody wants it any more

private:
  bool is_wanted() {
    given_up_ = given_up_ || (wanted_ && !wanted_());
    return !given_up_;
  }

  [[noreturn]] static void fail(png_structp png, png_const_charp why) {
    auto* self = static_cast<png_reader*>(png_get_error_ptr(png));
    std::strncpy(self->message_, why, sizeof self->message_ - 1);
    std::longjmp(self->way_out_, 1);
  }

  std::string_view left_;
  const still_wanted& wanted_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf way_out_ = {};
  char message_[128] = {};
  bool given_up_ = false;
};

constexpr std::size_t signature_bytes = 8, number_bytes = 4;
constexpr std::size_t most_inflation = 1032; ///< by deflate

std::string as_number(std::size_t value) {
  std::string bytes(number_bytes, '\0');
  png_save_uint_32(reinterpret_cast<png_bytep>(bytes.data()), static_cast<png_uint_32>(value));
  return bytes;
}

const Bytef* as_bytes(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

void add_chunk(std::string& file, std::string_view type, std::string_view body) {
  const auto all = std::string(type) + std::string(body);
  file += as_number(body.size()) + all + as_number(crc32(0, as_bytes(all), static_cast<uInt>(all.size())));
}

/// The first `size` bytes that `deflated` holds; nothing if it holds fewer. What follows them does not matter.
std::optional<std::string> inflated(std::string_view deflated, std::size_t size) {
  if (deflated.size() * most_inflation < size) return std::nullopt;
  std::string bytes(size, '\0');
  z_stream stream{};
  stream.next_in = const_cast<Bytef*>(as_bytes(deflated));
  stream.avail_in = static_cast<uInt>(deflated.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  inflate(&stream, Z_SYNC_FLUSH);
  const bool whole = stream.avail_out == 0;
  inflateEnd(&stream);
  if (!whole) return std::nullopt;
  return bytes;
}

/// A file with the same pixels whose checksums and ends are right, if all pixels are there. `filtered`: the size of its
/// rows.
std::optional<std::string> repaired(std::string_view file, std::size_t filtered) {
  if (filtered == 0) return std::nullopt;
  std::string result(file.substr(0, signature_bytes)), pixels;
  for (auto left = file.substr(signature_bytes); left.size() >= 2 * number_bytes;) {
    const auto length = std::size_t{png_get_uint_32(as_bytes(left))};
    const auto type = left.substr(number_bytes, number_bytes);
    left.remove_prefix(2 * number_bytes);
    const auto body = left.substr(0, length);
    if (type == "IDAT")
      pixels += body;
    else if (pixels.empty())
      add_chunk(result, type, body);
    else
      break;
    left.remove_prefix(std::min(left.size(), length + number_bytes));
  }
  const auto rows = inflated(pixels, filtered);
  if (!rows) return std::nullopt;
  std::string deflated(compressBound(static_cast<uLong>(filtered)), '\0');
  auto length = static_cast<uLongf>(deflated.size());
  if (compress2(reinterpret_cast<Bytef*>(deflated.data()), &length, as_bytes(*rows), static_cast<uLong>(filtered),
                Z_BEST_SPEED) != Z_OK)
    return std::nullopt;
  add_chunk(result, "IDAT", std::string_view(deflated).substr(0, length));
  add_chunk(result, "IEND", {});
  return result;
}

decoded decode(std::string_view file, const still_wanted& wanted, bool repairs) {
  auto broken = [](const std::string& why) { return tl::unexpected("not a readable PNG file: " + why); };
  png_reader reader(file, wanted);
  if (!reader.read_header()) return broken(reader.message());
  if (auto why = size_objection(reader.width(), reader.height()); !why.empty()) return tl::unexpected(why);
  const auto filtered = reader.filtered_bytes();
  picture result{static_cast<int>(reader.width()), static_cast<int>(reader.height()), {}};
  auto stride = std::size_t{3} * reader.width();
  result.rgb.resize(stride * reader.height());
  std::vector<png_bytep> rows;
  for (auto at = result.rgb.data(); rows.size() < reader.height(); at += stride) rows.push_back(at);
  if (reader.read_pixels(rows.data())) return result;
  if (repairs && !reader.given_up())
    if (const auto whole = repaired(file, filtered)) return decode(*whole, wanted, false);
  return broken(reader.message());
}

} // namespace

/// As in browsers, a picture whose pixels can all be read is shown, whatever its checksums say.
decoded decode_png(std::string_view file, const still_wanted& wanted) {
  return decode(file, wanted, true);
}

} // namespace parley::inference::vision
