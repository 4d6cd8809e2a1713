#pragma once

#include <CLI/CLI.hpp>

#include <functional>

// The subcommands. Each adds its flags. The chosen one stores a job, which runs if the whole command line is valid.
namespace parley::app {

/// Does the job and returns the exit status: 0 = done, 1 = failed at run time, 2 = wrong usage or settings. May throw
/// config::settings_error (2) and other exceptions (1).
using job = std::function<int()>;

// `chosen` must outlive the parsing of the command line.
void add_serve(CLI::App& app, job& chosen);
void add_gateway(CLI::App& app, job& chosen);
void add_worker(CLI::App& app, job& chosen);
void add_probe(CLI::App& app, job& chosen);
void add_load(CLI::App& app, job& chosen);
void add_verify(CLI::App& app, job& chosen);
void add_init_model(CLI::App& app, job& chosen);
void add_check_config(CLI::App& app, job& chosen);
void add_check_model(CLI::App& app, job& chosen);

} // namespace parley::app
