#include "inference/verify/verify.hpp"

#include "app/command.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

namespace parley::app {

void add_verify(CLI::App& root, action& chosen) {
  struct flags {
    std::string model;
    std::string goldens;
  };
  auto* command = root.add_subcommand("verify", "Replay what was recorded from the reference, case by case");
  auto given = std::make_shared<flags>();
  command->add_option("--model", given->model, "Checkpoint folder")->required();
  command->add_option("--goldens", given->goldens, "Folder with the recorded cases")->required();
  command->callback([&chosen, given] {
    chosen = [given] { return inference::verify::run_verify(given->model, given->goldens, std::cout); };
  });
}

} // namespace parley::app
