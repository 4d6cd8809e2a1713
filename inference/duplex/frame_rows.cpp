#include "inference/duplex/frame_rows.hpp"

#include <ATen/ATen.h>

namespace parley::inference::duplex {

std::vector<const vision::patch_grid*> pieces_of(std::span<const vision::sliced_picture> pictures) {
  std::vector<const vision::patch_grid*> all;
  for (const auto& picture : pictures)
    for (const auto& piece : picture.pieces) all.push_back(&piece);
  return all;
}

at::Tensor frame_rows(const thinker& model, std::span<const vision::sliced_picture> frames, const at::Tensor& seen) {
  std::vector<token_id> marks;
  for (const auto* name : {"<image>", "</image>", "<slice>", "</slice>"}) marks.push_back(model.text().id(name));
  auto mark = model.llm().embed(marks).split(1);
  std::vector<at::Tensor> rows;
  auto used = std::int64_t{0};
  for (const auto& frame : frames)
    for (auto piece = std::size_t{0}; piece < frame.pieces.size(); ++piece) {
      auto kind = piece == 0 ? std::size_t{0} : std::size_t{2};
      rows.insert(rows.end(), {mark[kind], seen[used++], mark[kind + 1]});
    }
  return at::cat(rows);
}

} // namespace parley::inference::duplex
