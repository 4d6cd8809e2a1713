#include "inference/vision/slices.hpp"

#include "inference/vision/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace parley::inference::vision {

namespace {

/// The nearest multiple, with ties to even as in Python; at least one.
int multiple_of(double length, int unit) {
  return std::max(static_cast<int>(std::nearbyint(length / unit)) * unit, unit);
}

pixel_size best_size(double width, double height, bool upscale, const slicing& how) {
  const double s = how.scale_resolution;
  if (upscale || width * height > s * s) {
    const double ratio = width / height;
    height = std::trunc(s / std::sqrt(ratio));
    width = std::trunc(height * ratio);
  }
  return {multiple_of(width, how.patch_size), multiple_of(height, how.patch_size)};
}

std::optional<slice_grid> find_grid(pixel_size of, int max_slice_nums, const slicing& how) {
  if (!how.slice_mode) return {};
  const double area = static_cast<double>(of.width) * of.height;
  const double unit = static_cast<double>(how.scale_resolution) * how.scale_resolution;
  const int wanted = std::min(static_cast<int>(std::ceil(area / unit)), max_slice_nums);
  if (wanted <= 1) return {};
  const double shape = std::log(static_cast<double>(of.width) / of.height);
  auto least = std::numeric_limits<double>::infinity();
  std::optional<slice_grid> best;
  for (int cells = wanted - 1; cells <= wanted + 1; ++cells) {
    if (cells == 1 || cells > max_slice_nums) continue;
    for (int columns = 1; columns <= cells; ++columns) {
      if (cells % columns != 0) continue;
      const int rows = cells / columns;
      const double error = std::abs(shape - std::log(static_cast<double>(columns) / rows));
      if (error >= least) continue;
      least = error;
      best = slice_grid{columns, rows};
    }
  }
  return best;
}

picture crop(const picture& from, int left, int top, int width, int height) {
  picture to{width, height, {}};
  const auto stride = std::size_t{3} * static_cast<std::size_t>(width);
  to.rgb.resize(stride * static_cast<std::size_t>(height));
  for (int y = 0; y < height; ++y) {
    const auto start =
        static_cast<std::size_t>(top + y) * static_cast<std::size_t>(from.width) + static_cast<std::size_t>(left);
    std::memcpy(to.rgb.data() + stride * static_cast<std::size_t>(y), from.rgb.data() + 3 * start, stride);
  }
  return to;
}

} // namespace

slice_plan plan_slices(pixel_size picture, int max_slice_nums, const slicing& how) {
  slice_plan plan;
  plan.grid = find_grid(picture, max_slice_nums, how);
  plan.overview = best_size(picture.width, picture.height, !plan.grid, how);
  if (plan.grid) {
    const auto [columns, rows] = *plan.grid;
    const double width = static_cast<double>(multiple_of(picture.width, columns)) / columns;
    const double height = static_cast<double>(multiple_of(picture.height, rows)) / rows;
    const auto cell = best_size(width, height, true, how);
    plan.refined = {cell.width * columns, cell.height * rows};
  }
  return plan;
}

std::vector<picture> cut_pieces(const picture& whole, const slice_plan& plan) {
  std::vector<picture> pieces;
  pieces.push_back(resize(whole, plan.overview.width, plan.overview.height));
  if (!plan.grid) return pieces;
  const auto refined = resize(whole, plan.refined.width, plan.refined.height);
  const int width = plan.refined.width / plan.grid->columns, height = plan.refined.height / plan.grid->rows;
  for (int row = 0; row < plan.grid->rows; ++row)
    for (int column = 0; column < plan.grid->columns; ++column)
      pieces.push_back(crop(refined, column * width, row * height, width, height));
  return pieces;
}

} // namespace parley::inference::vision
