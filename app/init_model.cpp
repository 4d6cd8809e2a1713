#include "inference/init/init_model.hpp"

#include "app/command.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>

namespace parley::app {

void add_init_model(CLI::App& root, action& chosen) {
  struct flags {
    std::string preset;
    std::uint64_t seed = 0;
    std::string out;
  };
  auto* command = root.add_subcommand("init-model", "Write a checkpoint with random weights in the real layout");
  auto given = std::make_shared<flags>();
  command->add_option("--preset", given->preset, "Size of the model")
      ->required()
      ->check(CLI::IsMember({"tiny", "mid", "minicpm-o-4.5"}));
  command->add_option("--seed", given->seed, "Same seed, same weights")->required();
  command->add_option("--out", given->out, "Folder to write, missing or empty")->required();
  command->callback([&chosen, given] {
    chosen = [given] {
      inference::init_model(given->preset, given->seed, given->out);
      return 0;
    };
  });
}

} // namespace parley::app
