#include "inference/vision/positions.hpp"

#include <ATen/ATen.h>

namespace parley::inference::vision {

at::Tensor bucket_coordinates(std::int64_t patches, std::int64_t table_side) {
  // Float32 throughout, like the reference: at 35, 70 ... patches, coordinates coincide exactly with boundaries.
  const auto step = static_cast<double>(1.0F / static_cast<float>(patches));
  const auto width = 1.0 / static_cast<double>(table_side);
  auto coordinates = at::arange(0, 1 - 1e-6, step, at::kFloat);
  auto boundaries = at::arange(width, 1.0, width, at::kFloat);
  return at::bucketize(coordinates, boundaries, /*out_int32=*/false, /*right=*/true);
}

at::Tensor position_ids(std::int64_t rows, std::int64_t columns, std::int64_t table_side) {
  auto down = bucket_coordinates(rows, table_side), across = bucket_coordinates(columns, table_side);
  return (down.unsqueeze(1) * table_side + across).flatten();
}

at::Tensor sine_table(std::int64_t count, std::int64_t width) {
  auto frequency = at::arange(width / 2, at::kFloat).div_(static_cast<double>(width) / 2);
  auto omega = at::pow(10000.0, frequency).reciprocal_();
  auto angle = at::arange(count, at::kFloat).unsqueeze(1) * omega;
  return at::cat({angle.sin(), angle.cos()}, 1);
}

} // namespace parley::inference::vision
