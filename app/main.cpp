#include "app/commands.hpp"
#include "app/version.hpp"
#include "base/memory.hpp"
#include "config/load.hpp"

#include <exception>
#include <iostream>
#include <string>

namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;

/// Prints one line to standard error and returns `status`.
int complain(std::string what, int status) {
  for (auto& c : what)
    if (c == '\n') c = ' ';
  std::cerr << "parley: " << what << std::endl;
  return status;
}

/// The word that was given instead of a command, if that is the mistake.
std::string unknown_command(const CLI::App& app) {
  const CLI::App* reached = &app;
  while (!reached->get_subcommands().empty()) reached = reached->get_subcommands().front();
  if (reached->get_require_subcommand_min() == 0 || reached->remaining().empty()) return {};
  return reached->remaining().front();
}

} // namespace

int main(int argc, char** argv) {
  parley::base::keep_freed_memory();
  CLI::App app{"Parley: a server for the MiniCPM-o 4.5 Realtime API", "parley"};
  app.set_version_flag("--version", parley::app::version);
  app.require_subcommand(1);
  parley::app::job chosen;
  parley::app::add_serve(app, chosen);
  parley::app::add_gateway(app, chosen);
  parley::app::add_worker(app, chosen);
  parley::app::add_probe(app, chosen);
  parley::app::add_load(app, chosen);
  parley::app::add_verify(app, chosen);
  parley::app::add_init_model(app, chosen);
  parley::app::add_check_config(app, chosen);
  parley::app::add_check_model(app, chosen);
  try {
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem); // --help
    const auto unknown = unknown_command(app);
    return complain(unknown.empty() ? problem.what() : "unknown command " + unknown, wrong_usage);
  } catch (const parley::config::settings_error& problem) {
    return complain(problem.what(), wrong_usage);
  } catch (const std::exception& problem) {
    return complain(problem.what(), failed);
  }
}
