#pragma once

#include "inference/vision/picture.hpp"

#include <optional>
#include <vector>

// How a picture is sliced (docs/model/thinker.md 2.1): an overview of the whole, and a grid of slices if it is large.
namespace parley::inference::vision {

/// The checkpoint's rules: `preprocessor_config.json`.
struct slicing {
  int scale_resolution = 448; ///< each piece has about the area of a square with this side
  int patch_size = 14;        ///< pixels; the sides of a piece are multiples of it
  bool slice_mode = true;     ///< false: only the overview
};

struct pixel_size {
  int width;
  int height;

  friend bool operator==(const pixel_size&, const pixel_size&) = default;
};

struct slice_grid {
  int columns;
  int rows;

  friend bool operator==(const slice_grid&, const slice_grid&) = default;
};

/// How one picture is sliced.
struct slice_plan {
  pixel_size overview;            ///< size of the whole picture, resized
  std::optional<slice_grid> grid; ///< none = only the overview
  pixel_size refined = {};        ///< with a grid: size of the whole picture before it is cut into cells

  int pieces() const { return 1 + (grid ? grid->columns * grid->rows : 0); }
};

/// `max_slice_nums` limits the grid's cells; 1 = no grid. Pure.
slice_plan plan_slices(pixel_size picture, int max_slice_nums, const slicing& how);

/// The pieces of the plan: overview, then the grid's cells row by row.
std::vector<picture> cut_pieces(const picture& whole, const slice_plan& plan);

} // namespace parley::inference::vision
