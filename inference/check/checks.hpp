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

/// Whether the expected files exist and contain what their names say. Compares their sizes, and with `hash` their
/// SHA-256, with the most widespread revision. Returns false if further checks are pointless.
bool check_files(const folders& where, bool hash, findings& out);

/// Checks config.json and preprocessor_config.json for values that would make results wrong or that differ from
/// MiniCPM-o 4.5.
void check_config(const folders& where, findings& out);

/// Checks name, shape and number format of every tensor that the configuration requires. Reads headers only.
void check_tensors(const folders& where, findings& out);

/// Checks the vocabulary, merges, control tokens, and recorded ids.
void check_tokenizer(const folders& where, findings& out);

/// Loads the networks of `assets/token2wav` as the server does, and checks the default voice.
void check_voice(const folders& where, findings& out);

/// Checks that every number of every tensor is finite. Reads all weights.
void check_numbers(const folders& where, findings& out);

/// config.json, or null when it can't be read.
nlohmann::json config_of(const std::filesystem::path& model);

/// Whether init-model made the folder, with random weights.
bool is_made(const nlohmann::json& config);

} // namespace parley::inference::check
