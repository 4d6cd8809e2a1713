#pragma once

#include "inference/chat/prompt.hpp"
#include "inference/chat/template.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/vision/pieces.hpp"
#include "inference/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace parley::inference::chat {

/// The contents of a turn's messages, before tokenization and encoding.
struct conversation {
  std::vector<template_message> messages;
  placeholders media;
  std::vector<std::vector<float>> clips; ///< 16 kHz; one entry for each message with sound, all its sounds joined
  std::int64_t media_rows = 0;           ///< rows of all placeholders, including two marks each
  std::string objection;                 ///< the reason why it is refused, in words for the client; empty = none
};

/// Reads the messages. `pictures`: all of the turn, sliced, in the order of `pictures_in`; empty if the model does not
/// see.
conversation read_conversation(const submit_turn& turn, const model_config& model,
                               std::span<const vision::sliced_picture> pictures);

/// The picture files of a turn, in the order in which its prompt shows them.
std::vector<image_file> pictures_in(const submit_turn& turn);

/// A lower bound for the tokens of a conversation: the rows of all placeholders, and for text its length only.
std::int64_t least_tokens(const conversation& talk);

} // namespace parley::inference::chat
