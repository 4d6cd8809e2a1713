#pragma once

#include "inference/kernels/packed_upload.hpp"
#include "inference/vocoder/flow_encoder.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Sequences of different lengths in one batch, aligned at their ends, so that a distance between two rows is the same
/// in all of them. What is missing in front repeats the sequence's own first row, and is hidden as a key.
struct flow_encoder::padded_rows {
  std::int64_t sequences = 0, fresh = 0, total = 0; ///< how many; most new rows; most rows
  at::Tensor queries;                               ///< [sequences * fresh]: rows among the new ones
  at::Tensor keys;                                  ///< [sequences * total]: rows of the memory
  at::Tensor results;                               ///< [new rows]: where each is among the queries
  at::Tensor hidden;                                ///< bool [sequences, 1, 1, total]: keys that are not there

  /// `lengths`: new rows of each sequence; `all`: its history, which counts them already. Adds to `numbers` what the device
  /// must know.
  void plan(std::span<const std::int64_t> lengths, std::span<row_history* const> all, packed_upload& numbers);
  void use(const packed_upload& sent);

private:
  packed_upload::part query_part_, key_part_, result_part_, missing_part_;
};

/// On the CPU, where sequences run one after another, only the lengths.
class flow_encoder::places {
public:
  /// Elsewhere makes room in `memory`; the streams count their new rows from now on. Null on the CPU. Adds to `numbers`
  /// what the device must know. Throws c10::Error if the device has no memory left.
  places(const flow_encoder& model, std::span<const job> jobs, const memory* memory, packed_upload& numbers);

  /// Moves rows that have to move, before anything else of the call.
  void move() const;

  /// Reads the numbers back once they have been sent.
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

  /// Where all streams' memory is read and written.
  struct shared {
    row_writes token_rows, mel_rows;
    row_contexts::exchange looked, raised;
    shared(std::span<const job> jobs, const places& at);
  };

  void plan_windows(const flow_encoder& model, packed_upload& numbers);

  std::vector<std::int64_t> tokens_, rows_, mel_rows_;
  const memory* memory_;
  std::optional<shared> shared_;
  windows look_first_, look_second_, up_;
  packed_upload::part own_part_;
  at::Tensor own_; ///< the tokens that are not lookahead only
  padded_rows token_attention_, mel_attention_;
};

} // namespace parley::inference::speech
