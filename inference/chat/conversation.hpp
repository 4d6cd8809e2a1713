#pragma once

#include "inference/chat/prompt.hpp"
#include "inference/chat/template.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/unit.hpp"
#include "inference/vision/pieces.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace parley::inference::chat {

/// What a turn's messages come to, before any of it is tokens or rows.
struct conversation {
  std::vector<template_message> messages;
  placeholders media;
  std::vector<std::vector<float>> clips; ///< 16 kHz: the sounds of each message that has some, joined
  std::int64_t media_rows = 0;           ///< of all placeholders, with two marks each
  std::string objection;                 ///< in words for the client; empty = none
};

/// Reads the messages. `pictures`: all of the turn, sliced, in the order of `pictures_in`; none when the model does not
/// see.
conversation read_conversation(const submit_turn& turn, const model_config& model,
                               std::span<const vision::sliced_picture> pictures);

/// The picture files of a turn, in the order in which its prompt shows them.
std::vector<image_file> pictures_in(const submit_turn& turn);

/// What a conversation comes to at least, in tokens: the rows of each placeholder, and of the text only its length.
std::int64_t least_tokens(const conversation& talk);

} // namespace parley::inference::chat
