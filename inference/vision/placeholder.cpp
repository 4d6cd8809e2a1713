#include "inference/vision/placeholder.hpp"

namespace parley::inference::vision {

std::string image_placeholder(const std::optional<slice_grid>& grid, int rows_per_piece,
                              std::optional<std::size_t> number) {
  std::string rows;
  for (int i = 0; i < rows_per_piece; ++i) rows += "<unk>";
  std::string text;
  if (number) text += "<image_id>" + std::to_string(*number) + "</image_id>";
  text += "<image>" + rows + "</image>";
  if (!grid) return text;
  for (int row = 0; row < grid->rows; ++row) {
    if (row > 0) text += '\n';
    for (int column = 0; column < grid->columns; ++column) text += "<slice>" + rows + "</slice>";
  }
  return text;
}

} // namespace parley::inference::vision
