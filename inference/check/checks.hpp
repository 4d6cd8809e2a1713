#pragma once

#include "inference/check/findings.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

// The parts of `parley check-model`. Each says all that it finds, and throws nothing for what lies in the folder.
namespace parley::inference::check {

/// A model folder, and the one whose `assets` belong to it; often the same.
struct folders {
  std::filesystem::path model;
  std::filesystem::path assets;
};

/// Whether the expected files are there and are what their names say; their sizes, and with `hash` their SHA-256, against
/// the revision that most people have. False: there is nothing to look at further.
bool check_files(const folders& where, bool hash, findings& out);

/// config.json and preprocessor_config.json: what would make results wrong, and what differs from MiniCPM-o 4.5.
void check_config(const folders& where, findings& out);

/// Every tensor that the configuration plans: its name, shape and kind of number. Reads headers only.
void check_tensors(const folders& where, findings& out);

/// Vocabulary, merges, control tokens, and recorded ids.
void check_tokenizer(const folders& where, findings& out);

/// The networks of `assets/token2wav`, loaded as the server loads them, and the default voice.
void check_voice(const folders& where, findings& out);

/// Whether every number of every tensor is finite. Reads all weights.
void check_numbers(const folders& where, findings& out);

/// config.json, or null when it can't be read.
nlohmann::json config_of(const std::filesystem::path& model);

/// Whether init-model made the folder: its weights are random.
bool is_made(const nlohmann::json& config);

} // namespace parley::inference::check
