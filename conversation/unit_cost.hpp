#pragma once

#include <cstddef>

namespace parley::conversation {

/// How many rows of the KV cache one unit of a duplex session takes at the most. The engine reports it, because it
/// depends on the model.
struct unit_cost {
  int rows = 0;             ///< of every unit: its marks and its sound, without pictures and what the model says
  int rows_per_picture = 0; ///< of each frame and of each slice of one, with the marks around it
  bool slices = false;      ///< frames are cut into slices if the client allows it

  /// \param max_slice_nums that the client allows of each frame; 1 = the overview alone
  /// \param most_said tokens that the model may say
  constexpr int most_rows(std::size_t frames, int max_slice_nums, int most_said) const {
    const int pictures_per_frame = slices && max_slice_nums > 1 ? max_slice_nums + 1 : 1; // the overview and the slices
    return rows + rows_per_picture * pictures_per_frame * static_cast<int>(frames) + most_said;
  }

  friend bool operator==(const unit_cost&, const unit_cost&) = default;
};

/// All members, for archives (actors/cluster/byte_archive.hpp): a new one does not compile until it stands here.
template<class A>
void fields(A& a, unit_cost& of) {
  auto& [rows, picture, slices] = of;
  a(rows, picture, slices);
}

} // namespace parley::conversation
