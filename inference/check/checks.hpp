#pragma once

#include "inference/check/findings.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

// The parts of `parley check-model`. Each reports everything that it finds; nothing in the folder makes it throw.
namespace parley::inference::check {

/// A model folder, and the folder that its `assets` come from, often the same.
struct folders {
  std::filesystem::path model;
  std::filesystem::path assets;
};

/// Whether the expected files are there and are what their names say; compares their sizes, and with `hash` their
/// SHA-256, with the revision that most people have. False: checking further is pointless.
bool check_files(const folders& where, bool hash, findings& out);

/// config.json and preprocessor_config.json: what would make results wrong, and what differs from MiniCPM-o 4.5.
void check_config(const folders& where, findings& out);

/// Every tensor that the configuration requires: its name, shape and number format. Reads headers only.
void check_tensors(const folders& where, findings& out);

/// Vocabulary, merges, control tokens, and recorded ids.
void check_tokenizer(const folders& where, findings& out);

/// The networks of `assets/token2wav`, loaded as the server loads them, and the default voice.
void check_voice(const folders& where, findings& out);

/// Whether every number of every tensor is finite. Reads all weights.
void check_numbers(const folders& where, findings& out);

/// config.json, or null when it can't be read.
nlohmann::json config_of(const std::filesystem::path& model);

/// Whether init-model made the folder, so that its weights are random.
bool is_made(const nlohmann::json& config);

} // namespace parley::inference::check
