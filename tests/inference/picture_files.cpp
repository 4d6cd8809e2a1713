#include "tests/inference/picture_files.hpp"

#include <cstdio>
#include <cstdlib>
#include <jpeglib.h>
#include <png.h>
#include <stdexcept>
#include <webp/encode.h>
#include <zlib.h>

namespace parley::inference::testing {

namespace {

void write_orientation(jpeg_compress_struct& info, int orientation) {
  // "Exif", a little-endian TIFF header, one entry: 0x0112, SHORT, 1 value.
  const JOCTET exif[] = {'E', 'x',  'i',  'f', 0,
                         0,   'I',  'I',  42,  0,
                         8,   0,    0,    0,   1,
                         0,   0x12, 0x01, 3,   0,
                         1,   0,    0,    0,   static_cast<JOCTET>(orientation),
                         0,   0,    0,    0,   0,
                         0,   0};
  jpeg_write_marker(&info, JPEG_APP0 + 1, exif, sizeof exif);
}

std::vector<JSAMPLE> line_of(const vision::picture& from, std::size_t y, const jpeg_options& how) {
  std::vector<JSAMPLE> line;
  const auto width = static_cast<std::size_t>(from.width);
  for (std::size_t x = 0; x < width; ++x) {
    const auto* px = from.rgb.data() + 3 * (y * width + x);
    if (how.grey)
      line.push_back(px[0]);
    else
      line.insert(line.end(), px, px + 3);
    if (how.cmyk) line.push_back(255); // no black ink
  }
  return line;
}

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

void put_big_endian(std::string& bytes, std::size_t at, std::uint32_t value, int count) {
  for (int i = 0; i < count; ++i)
    bytes.at(at + static_cast<std::size_t>(i)) = static_cast<char>(value >> (8 * (count - 1 - i)) & 255);
}

} // namespace

vision::picture gradient(int width, int height, bool colours) {
  vision::picture p{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const int red = 255 * x / width, green = 255 * y / height, blue = (red + green) / 2;
      for (int value : {red, colours ? green : red, colours ? blue : red})
        p.rgb.push_back(static_cast<std::uint8_t>(value));
    }
  return p;
}

std::string jpeg_file(const vision::picture& from, const jpeg_options& how) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(from.width);
  info.image_height = static_cast<JDIMENSION>(from.height);
  info.input_components = how.grey ? 1 : how.cmyk ? 4 : 3;
  info.in_color_space = how.grey ? JCS_GRAYSCALE : how.cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, how.quality, TRUE);
  if (how.progressive) jpeg_simple_progression(&info);
  if (how.full_chroma) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  if (how.orientation > 0) write_orientation(info, how.orientation);
  while (info.next_scanline < info.image_height) {
    auto line = line_of(from, info.next_scanline, how);
    JSAMPROW row = line.data();
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return file;
}

std::string png_file(const png_content& content) {
  std::string file;
  png_structp png = png_create_write_struct(
      PNG_LIBPNG_VER_STRING, nullptr,
      [](png_structp, png_const_charp why) {
        std::fprintf(stderr, "png: %s\n", why);
        std::abort();
      },
      nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep bytes, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(bytes), count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(content.width), static_cast<png_uint_32>(content.height),
               content.bit_depth, content.colour_type, content.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> colours;
  for (std::size_t i = 0; i + 2 < content.palette.size(); i += 3)
    colours.push_back({content.palette[i], content.palette[i + 1], content.palette[i + 2]});
  if (!colours.empty()) png_set_PLTE(png, info, colours.data(), static_cast<int>(colours.size()));
  png_write_info(png, info);
  auto rows = content.rows;
  std::vector<png_bytep> pointers;
  for (auto& row : rows) pointers.push_back(row.data());
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string png_file(const vision::picture& from) {
  png_content content{from.width, from.height, PNG_COLOR_TYPE_RGB, 8, {}};
  for (auto at = from.rgb.begin(); at != from.rgb.end(); at += 3 * from.width)
    content.rows.emplace_back(at, at + 3 * from.width);
  return png_file(content);
}

std::string webp_file(const vision::picture& from, bool lossless, int alpha) {
  WebPConfig config;
  WebPPicture picture;
  if (!WebPConfigInit(&config) || !WebPPictureInit(&picture)) throw std::runtime_error("libwebp of another version");
  config.lossless = lossless;
  config.exact = 1;
  config.quality = 95;
  picture.use_argb = 1;
  picture.width = from.width;
  picture.height = from.height;
  std::vector<std::uint8_t> rgba;
  for (std::size_t i = 0; i < from.rgb.size(); i += 3)
    rgba.insert(rgba.end(), {from.rgb[i], from.rgb[i + 1], from.rgb[i + 2], static_cast<std::uint8_t>(alpha)});
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  const bool made = WebPPictureImportRGBA(&picture, rgba.data(), 4 * from.width) && WebPEncode(&config, &picture);
  std::string file(reinterpret_cast<char*>(writer.mem), writer.size);
  WebPMemoryWriterClear(&writer);
  WebPPictureFree(&picture);
  if (!made) throw std::runtime_error("WebPEncode failed");
  return file;
}

std::string with_jpeg_size(std::string file, int width, int height) {
  for (std::size_t at = 2; at + 9 < file.size();) {
    const auto marker = static_cast<unsigned char>(file[at + 1]);
    if (marker >= 0xC0 && marker <= 0xC2) {
      put_big_endian(file, at + 5, static_cast<std::uint32_t>(height), 2);
      put_big_endian(file, at + 7, static_cast<std::uint32_t>(width), 2);
      return file;
    }
    at += 2 + (big_endian(file, at + 2) >> 16);
  }
  throw std::runtime_error("no frame header");
}

std::string with_png_size(std::string file, std::uint32_t width, std::uint32_t height) {
  put_big_endian(file, 16, width, 4);
  put_big_endian(file, 20, height, 4);
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(file.data()) + 12, 17);
  put_big_endian(file, 29, static_cast<std::uint32_t>(sum), 4);
  return file;
}

} // namespace parley::inference::testing
