#include "app/commands.hpp"
#include "config/load.hpp"
#include "config/print.hpp"

#include <iostream>
#include <memory>
#include <string>
#include <unistd.h>

namespace parley::app {

void add_check_config(CLI::App& app, job& chosen) {
  auto* sub = app.add_subcommand("check-config", "Checks a settings file and prints the settings in effect");
  const auto file = std::make_shared<std::string>();
  sub->add_option("file", *file, "TOML file")->required();
  sub->callback([file, &chosen] {
    chosen = [file] {
      config::settings settings;
      config::load_file(settings, *file);
      config::apply_environment(settings, environ);
      config::check_whole(settings);
      std::cout << config::print(settings);
      return 0;
    };
  });
}

} // namespace parley::app
