#include "inference/vision/decode.hpp"

#include <csetjmp>
#include <cstdio>
#include <jerror.h>
#include <jpeglib.h>

namespace parley::inference::vision {

namespace {

/// A progressive file may rewrite every coefficient in each scan; real encoders use about ten scans.
constexpr int max_scans = 20;
constexpr long max_memory_bytes = 256L << 20; ///< limits the coefficients of a progressive file

/// libjpeg leaves a failed call by longjmp, so nothing with a destructor may exist between `setjmp` and the library.
class jpeg_reader {
public:
  jpeg_reader(std::string_view file, const still_wanted& wanted) : file_(file), wanted_(wanted) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) {
      auto* self = static_cast<jpeg_reader*>(info->client_data);
      info->err->format_message(info, self->message_);
      std::longjmp(self->way_out_, 1);
    };
    // Only a premature end of the file matters; like the reference, this ignores other warnings.
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) info->err->error_exit(info);
    };
    errors_.output_message = [](j_common_ptr) {};
    watch_.progress_monitor = [](j_common_ptr info) {
      auto* self = static_cast<jpeg_reader*>(info->client_data);
      if (self->info_.input_scan_number > max_scans) {
        std::snprintf(self->message_, sizeof self->message_, "more than %d scans", max_scans);
        std::longjmp(self->way_out_, 1);
      }
      if (!self->is_wanted()) std::longjmp(self->way_out_, 1);
    };
  }

  ~jpeg_reader() {
    if (created_) jpeg_destroy_decompress(&info_);
  }

  jpeg_reader(const jpeg_reader&) = delete;
  jpeg_reader& operator=(const jpeg_reader&) = delete;

  bool read_header() {
    if (setjmp(way_out_)) return false;
    start();
    return true;
  }

  /// `out` has room for the size in the header, `line` for 4 * width bytes.
  bool read_pixels(std::uint8_t* out, std::uint8_t* line) {
    if (setjmp(way_out_)) return false;
    if (info_.num_components == 4)
      read_cmyk(out, line);
    else
      read_rgb(out);
    return true;
  }

  int width() const { return static_cast<int>(info_.image_width); }
  int height() const { return static_cast<int>(info_.image_height); }
  std::string message() const { return message_; }

private:
  /// In its own stack frame, so that longjmp skips no object of the called function.
  bool is_wanted() const { return !wanted_ || wanted_(); }

  void start() {
    jpeg_create_decompress(&info_);
    created_ = true;
    info_.progress = &watch_;
    info_.mem->max_memory_to_use = max_memory_bytes;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file_.data()), file_.size());
    jpeg_read_header(&info_, TRUE);
  }

  void read_rgb(std::uint8_t* out) {
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    auto stride = std::size_t{3} * info_.output_width;
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = out + stride * info_.output_scanline;
      jpeg_read_scanlines(&info_, &row, 1);
    }
  }

  /// Adobe's programs store inverted ink, and no other program writes CMYK.
  void read_cmyk(std::uint8_t* out, std::uint8_t* line) {
    info_.out_color_space = JCS_CMYK;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      auto* to = out + std::size_t{3} * info_.output_width * info_.output_scanline;
      JSAMPROW row = line;
      jpeg_read_scanlines(&info_, &row, 1);
      for (auto x = 0U; x < info_.output_width; ++x) {
        const int light = line[4 * x + 3];
        for (auto c = 0U; c < 3; ++c) {
          const int ink = (255 - line[4 * x + c]) * light + 128;
          to[3 * x + c] = static_cast<std::uint8_t>(light - (((ink >> 8) + ink) >> 8));
        }
      }
    }
  }

  std::string_view file_;
  const still_wanted& wanted_;
  jpeg_decompress_struct info_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr watch_ = {};
  std::jmp_buf way_out_ = {};
  char message_[JMSG_LENGTH_MAX] = {};
  bool created_ = false;
};

} // namespace

decoded decode_jpeg(std::string_view file, const still_wanted& wanted) {
  auto broken = [](const std::string& why) { return tl::unexpected("not a readable JPEG file: " + why); };
  jpeg_reader reader(file, wanted);
  if (!reader.read_header()) return broken(reader.message());
  if (auto why = size_objection(reader.width(), reader.height()); !why.empty()) return tl::unexpected(why);
  picture result{reader.width(), reader.height(), {}};
  auto width = static_cast<std::size_t>(result.width);
  result.rgb.resize(3 * width * static_cast<std::size_t>(result.height));
  std::vector<std::uint8_t> line(4 * width);
  if (!reader.read_pixels(result.rgb.data(), line.data())) return broken(reader.message());
  return result;
}

} // namespace parley::inference::vision
