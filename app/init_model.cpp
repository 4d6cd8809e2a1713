#include "inference/init/init_model.hpp"

#include "app/commands.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace parley::app {

void add_init_model(CLI::App& app, job& chosen) {
  struct wish {
    std::string preset;
    std::uint64_t seed = 0;
    std::string out;
    std::string tokenizer;
  };
  auto* sub = app.add_subcommand("init-model", "Writes a checkpoint with random weights in the real layout");
  const auto made = std::make_shared<wish>();
  sub->add_option("--preset", made->preset, "tiny, mid or minicpm-o-4.5")
      ->required()
      ->check(CLI::IsMember({"tiny", "mid", "minicpm-o-4.5"}));
  sub->add_option("--seed", made->seed, "Same seed, same weights")->required();
  sub->add_option("--out", made->out, "Folder to write: missing or empty")->required();
  sub->add_option("--tokenizer", made->tokenizer, "Folder whose vocabulary is used; default: single bytes");
  sub->callback([made, &chosen] {
    chosen = [made] {
      inference::init_model(made->preset, made->seed, made->out, {.tokenizer = made->tokenizer});
      return 0;
    };
  });
}

} // namespace parley::app
