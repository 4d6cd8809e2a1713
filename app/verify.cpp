#include "inference/verify/verify.hpp"

#include "app/commands.hpp"

#include <iostream>
#include <memory>
#include <string>

namespace parley::app {

void add_verify(CLI::App& app, job& chosen) {
  struct folders {
    std::string model;
    std::string goldens;
  };
  auto* sub = app.add_subcommand("verify", "Compares the model with recordings of the reference, case by case");
  const auto where = std::make_shared<folders>();
  sub->add_option("--model", where->model, "Checkpoint folder that the goldens were made with")->required();
  sub->add_option("--goldens", where->goldens, "Folder of golden cases")->required();
  sub->callback([where, &chosen] {
    chosen = [where] { return inference::verify::run_verify(where->model, where->goldens, std::cout); };
  });
}

} // namespace parley::app
