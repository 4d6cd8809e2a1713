#pragma once

#include "inference/kernels/packed_upload.hpp"
#include "inference/vocoder/flow_encoder.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Sequences of different lengths in one batch, aligned at their ends, so that a distance between two rows is the same
/// in all of them. What is missing in front repeats the sequence's own first row, and is hidden as a key.
struct flow_encoder::padded_rows {
  std::int64_t sequences = 0, fresh = 0, total = 0; ///< how many; most new rows; most rows
  at::Tensor queries;                               ///< [sequences * fresh]: rows among the new ones
  at::Tensor keys;                                  ///< [sequences * total]: rows among all, one sequence after another
  at::Tensor results;                               ///< [new rows]: where each is among the queries
  at::Tensor hidden;                                ///< bool [sequences, 1, 1, total]: keys that are not there

  /// `fresh`, `past`: new and earlier rows of each sequence. Adds to `numbers` what the device must know.
  void plan(std::span<const std::int64_t> fresh, std::span<const std::int64_t> past, packed_upload& numbers);
  void use(const packed_upload& sent);

private:
  packed_upload::part query_part_, key_part_, result_part_, missing_part_;
};

/// On the CPU, where sequences run one after another, only the lengths.
class flow_encoder::places {
public:
  /// Adds to `numbers` what the device must know.
  places(const flow_encoder& model, std::span<const job> jobs, at::Device device, packed_upload& numbers);

  /// Reads it back once it has been sent.
  void use(const packed_upload& sent);

  /// Of each job, its rows at mel rate.
  std::span<const std::int64_t> mel_rows() const { return mel_rows_; }

private:
  friend class flow_encoder;

  /// The windows of a convolution, and each sequence's last rows, which the next call's windows reach back to.
  struct windows {
    packed_upload::part row_part, end_part;
    at::Tensor rows, ends;
    void use(const packed_upload& sent);
  };

  std::vector<std::int64_t> tokens_, rows_, mel_rows_;
  bool together_;
  windows look_first_, look_second_, up_;
  packed_upload::part own_part_;
  at::Tensor own_; ///< the tokens that are not lookahead only
  padded_rows token_attention_, mel_attention_;
};

} // namespace parley::inference::speech
