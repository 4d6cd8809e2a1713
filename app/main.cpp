#include "app/command.hpp"
#include "config/load.hpp"

#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>

namespace {

/// Wrong usage is one clear line on standard error; help and version go to standard output.
int tell(const CLI::App& root, const CLI::ParseError& outcome) {
  if (outcome.get_exit_code() == 0) return root.exit(outcome);
  std::cerr << "parley: " << outcome.what() << '\n';
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App root{"Parley: a server for the MiniCPM-o 4.5 Realtime API", "parley"};
  root.set_version_flag("--version", PARLEY_VERSION);
  root.require_subcommand(1);
  parley::app::action chosen;
  parley::app::add_serve(root, chosen);
  parley::app::add_probe(root, chosen);
  parley::app::add_verify(root, chosen);
  parley::app::add_init_model(root, chosen);
  parley::app::add_check_config(root, chosen);
  try {
    root.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& outcome) {
    return tell(root, outcome);
  } catch (const parley::config::settings_error& wrong) {
    std::cerr << "parley: " << wrong.what() << '\n';
    return 2;
  } catch (const std::exception& failure) {
    std::cerr << "parley: " << failure.what() << '\n';
    return 1;
  }
}
