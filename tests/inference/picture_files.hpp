#pragma once

#include "inference/vision/picture.hpp"

#include <string>
#include <vector>

// Picture files as other programs write them, created at test time.
namespace parley::inference::testing {

/// Smooth enough that a lossy file stays close to it. Without `colours`, red = green = blue.
vision::picture gradient(int width, int height, bool colours = true);

struct jpeg_options {
  int quality = 95;
  bool progressive = false;
  bool full_chroma = false; ///< 4:4:4 instead of 4:2:0
  bool grey = false;
  bool cmyk = false;   ///< inverted ink, as Adobe writes it
  int orientation = 0; ///< from an EXIF header; 0 = none
};
std::string jpeg_file(const vision::picture& from, const jpeg_options& how = {});

/// `rows` holds samples as PNG stores them (16-bit values big-endian; below 8 bits several pixels share a byte).
struct png_content {
  int width;
  int height;
  int colour_type; ///< one of PNG_COLOR_TYPE_…
  int bit_depth;
  std::vector<std::vector<std::uint8_t>> rows;
  bool interlaced = false;
  std::vector<std::uint8_t> palette = {}; ///< RGB triples
};
std::string png_file(const png_content& content);
std::string png_file(const vision::picture& from);

/// `alpha` 255 = none. Lossless files keep the colours of fully transparent pixels.
std::string webp_file(const vision::picture& from, bool lossless, int alpha = 255);

/// The same JPEG file with another size in its header.
std::string with_jpeg_size(std::string file, int width, int height);

/// The same PNG file with another size in its header and a correct checksum.
std::string with_png_size(std::string file, std::uint32_t width, std::uint32_t height);

} // namespace parley::inference::testing
