#include "app/command.hpp"
#include "config/load.hpp"
#include "config/print.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

namespace parley::app {

void add_check_config(CLI::App& root, action& chosen) {
  auto* command = root.add_subcommand("check-config", "Validate a settings file and print the effective settings");
  auto file = std::make_shared<std::string>();
  command->add_option("file", *file, "TOML file")->required();
  command->callback([&chosen, file] {
    chosen = [file] {
      config::settings settings;
      config::load_file(settings, *file);
      std::cout << config::print(settings);
      return 0;
    };
  });
}

} // namespace parley::app
