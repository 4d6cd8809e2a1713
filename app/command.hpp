#pragma once

#include <functional>

namespace CLI {
class App;
}

// The subcommands: one function each, which adds the command with its flags and, when the command line names it, puts what
// is to be done into `chosen`. It returns the exit status: 0 done, 1 failed at run time, 2 wrong usage or settings.
namespace parley::app {

using action = std::function<int()>;

void add_serve(CLI::App& root, action& chosen);
void add_probe(CLI::App& root, action& chosen);
void add_verify(CLI::App& root, action& chosen);
void add_init_model(CLI::App& root, action& chosen);
void add_check_config(CLI::App& root, action& chosen);

} // namespace parley::app
