#pragma once

#include <cstddef>

namespace parley::conversation {

/// The most KV cache rows that one unit of a duplex session can take. The engine reports it for its model.
struct unit_cost {
  int rows = 0;             ///< for every unit: its marks and its sound, without pictures and the model's words
  int rows_per_picture = 0; ///< for each frame and each slice of one, including its marks
  bool slices = false;      ///< frames are cut into slices if the client allows it

  /// \param max_slice_nums limit that the client set for each frame; 1 = only the overview \param most_said maximum
  /// number of tokens that the model may say
  constexpr int most_rows(std::size_t frames, int max_slice_nums, int most_said) const {
    const int pictures_per_frame = slices && max_slice_nums > 1 ? max_slice_nums + 1 : 1; // the overview and the slices
    return rows + rows_per_picture * pictures_per_frame * static_cast<int>(frames) + most_said;
  }

  friend bool operator==(const unit_cost&, const unit_cost&) = default;
};

/// All members, for archives (actors/bytes/byte_archive.hpp): a new member does not compile until it is added here.
template<class A>
void fields(A& a, unit_cost& of) {
  auto& [rows, picture, slices] = of;
  a(rows, picture, slices);
}

} // namespace parley::conversation
