#include "inference/verify/verify.hpp"

#include "app/commands.hpp"
#include "app/cuda_library.hpp"

#include <iostream>
#include <map>
#include <memory>
#include <string>

namespace parley::app {

void add_verify(CLI::App& app, job& chosen) {
  struct wish {
    std::string model;
    std::string goldens;
    inference::verify::verify_options how;
  };
  auto* sub = app.add_subcommand("verify", "Compares the model with recordings of the reference, case by case");
  const auto where = std::make_shared<wish>();
  sub->add_option("--model", where->model, "Checkpoint folder that the goldens were made with")->required();
  sub->add_option("--goldens", where->goldens, "Folder of golden cases")->required();
  sub->add_option("--device", where->how.device, "auto, cpu, cuda or cuda:N; default cpu");
  sub->add_option("--dtype", where->how.dtype,
                  "What the thinker computes in: auto, float32, bfloat16 or float16; default float32, as recorded")
      ->transform(CLI::CheckedTransformer(std::map<std::string, config::dtype>{{"auto", config::dtype::automatic},
                                                                               {"float32", config::dtype::float32},
                                                                               {"bfloat16", config::dtype::bfloat16},
                                                                               {"float16", config::dtype::float16}}));
  sub->add_flag("--plain-attention", where->how.plain_attention,
                "Attend to one sequence after another: to tell whether a GPU's fused kernels for all of them differ");
  sub->callback([where, &chosen] {
    chosen = [where] {
      load_cuda_library(where->how.device);
      return inference::verify::run_verify(where->model, where->goldens, std::cout, where->how);
    };
  });
}

} // namespace parley::app
