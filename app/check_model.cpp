#include "inference/check/check_model.hpp"

#include "app/commands.hpp"
#include "app/cuda_library.hpp"
#include "app/logging.hpp"
#include "app/service.hpp"

#include <iostream>
#include <memory>
#include <string>

namespace parley::app {

void add_check_model(CLI::App& app, job& chosen) {
  struct wish {
    std::string model;
    bool hash = false, run = false;
    service_flags flags;
  };
  auto* sub =
      app.add_subcommand("check-model", "Checks that a model folder is complete and would run, without serving it");
  const auto made = std::make_shared<wish>();
  sub->add_option("folder", made->model, "Checkpoint folder")->required();
  sub->add_flag("--hash", made->hash, "Compares SHA-256 with the revision that most people have");
  sub->add_flag("--run", made->run, "Reads all weights, and tries a second of silence and some words");
  made->flags.add_common(*sub);
  made->flags.add(*sub, "--assets", "worker.assets", "Folder whose assets are used; default: the checkpoint folder");
  made->flags.add(*sub, "--device", "worker.device", "auto, cpu, cuda or cuda:N");
  made->flags.add(*sub, "--quant", "engine.quant", "int8 or int4: the language model's layers in fewer bits");
  sub->callback([made, &chosen] {
    chosen = [made] {
      inference::check::check_options options{made->hash, made->run, settings_from(made->flags)};
      start_logging(options.settings);
      if (made->run) load_cuda_library(options.settings.worker.device);
      return inference::check::check_model(made->model, options, std::cout);
    };
  });
}

} // namespace parley::app
