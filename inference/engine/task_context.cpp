#include "inference/engine/task_context.hpp"

#include "inference/voice/reference_voice.hpp"

#include <utility>

namespace parley::inference {

namespace {

constexpr std::size_t most_orders = 256; ///< of pictures, and of texts: far more than one per session

/// The rules of both kinds of sessions name these tokens.
std::optional<llm::shortlist> make_shortlist(const llm::duplex_sampling_ids& duplex, const chat::answer_ids& chat,
                                             at::Device device) {
  if (device.is_cpu()) return std::nullopt;
  auto named = chat.terminators;
  named.insert(named.end(), {duplex.turn_eos, duplex.listen});
  return llm::shortlist(duplex.chunk_eos, std::move(named), device);
}

} // namespace

task_context::task_context(const thinker& thinks, const talker* speaks, const llm::kv_pool& pool,
                           const engine_options& how, const engine::sink& out)
    : model(thinks), speaker(speaks), options(how), tell(out), control(duplex::control_tokens::of(model.text())),
      duplex_ids(llm::make_duplex_sampling_ids(model.text(), options.how)),
      answer_ids(chat::answer_ids::of(model.text())),
      shortlist(make_shortlist(duplex_ids, answer_ids, model.llm().device())), prompts(pool, options.kept_prompts),
      encoders(model), texts(1, most_orders) {
  if (speaker) voices.emplace(speaker->sound(), options.kept_voices);
  if (model.sees()) pictures.emplace(vision::slicing_of(model.config().vision), options.picture_threads, most_orders);
}

std::optional<std::shared_ptr<image_job>> task_context::slice(session_id owner, std::vector<image_file> files,
                                                              int max_slice_nums) {
  std::shared_ptr<image_job> order;
  if (files.empty() || !pictures) return order;
  order = std::make_shared<image_job>();
  order->owner = owner;
  order->files = std::move(files);
  order->max_slice_nums = max_slice_nums;
  order->most_pieces = static_cast<std::size_t>(options.info.context_tokens / model.config().vision.query_num);
  if (!pictures->take(order)) return std::nullopt;
  return order;
}

std::optional<std::string> voice_objection(const pcm& recording) {
  return recording && !recording->empty() ? speech::voice_problem(*recording) : std::nullopt;
}

} // namespace parley::inference
