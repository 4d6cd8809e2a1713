#include "inference/vision/decode.hpp"

#include <csetjmp>
#include <cstring>
#include <png.h>

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
    // As browsers do: a picture whose pixels can be read is shown, even if a checksum is wrong.
    png_set_crc_action(png_, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_option(png_, PNG_IGNORE_ADLER32, PNG_OPTION_ON);
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

  png_uint_32 width() const { return png_get_image_width(png_, info_); }
  png_uint_32 height() const { return png_get_image_height(png_, info_); }
  const char* message() const { return message_; }

private:
  bool is_wanted() const { return !wanted_ || wanted_(); }

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
};

} // namespace

decoded decode_png(std::string_view file, const still_wanted& wanted) {
  auto broken = [](const std::string& why) { return tl::unexpected("not a readable PNG file: " + why); };
  png_reader reader(file, wanted);
  if (!reader.read_header()) return broken(reader.message());
  if (auto why = size_objection(reader.width(), reader.height()); !why.empty()) return tl::unexpected(why);
  picture result{static_cast<int>(reader.width()), static_cast<int>(reader.height()), {}};
  auto stride = std::size_t{3} * reader.width();
  result.rgb.resize(stride * reader.height());
  std::vector<png_bytep> rows;
  for (auto at = result.rgb.data(); rows.size() < reader.height(); at += stride) rows.push_back(at);
  if (!reader.read_pixels(rows.data())) return broken(reader.message());
  return result;
}

} // namespace parley::inference::vision
