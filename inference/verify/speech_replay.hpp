#pragma once

#include "inference/tts/turn.hpp"
#include "inference/verify/recorded_draws.hpp"
#include "inference/verify/report.hpp"
#include "inference/vocoder/token2wav.hpp"

#include <nlohmann/json.hpp>

#include <memory>

namespace parley::inference::verify {

/// The random numbers `u` from a list of recorded draws.
recorded_draws numbers_of(const nlohmann::json& draws);

/// Runs a turn's group to its end and compares each step with the recorded `draws` ({u, token, p, candidates}).
/// `chance` is the turn's own source.
void replay_speech_tokens(const speech::tts_llama& llama, speech::tts_turn& turn, recorded_draws& chance,
                          const nlohmann::json& draws, case_check& check);

/// Makes a call of token2wav and compares it with a recorded one ({tokens, last, off, samples}). Returns its samples
/// [n] and stores its mel [bins, frames] in `mel`.
at::Tensor replay_sound(const speech::token2wav& model, const speech::token2wav::job& job,
                        const nlohmann::json& recorded, at::Tensor& mel, case_check& check);

/// Compares length, level and so on of what a session sent with `full_audio`.
void check_whole_sound(const std::vector<float>& mine, const nlohmann::json& recorded, case_check& check);

} // namespace parley::inference::verify
