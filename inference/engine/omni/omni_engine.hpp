#pragma once

#include "inference/engine.hpp"
#include "inference/engine/engine_options.hpp"
#include "inference/engine/idle_measurement.hpp"
#include "inference/engine/page_budget.hpp"
#include "inference/engine/session_table.hpp"
#include "inference/engine/stages.hpp"
#include "inference/engine/task_context.hpp"
#include "inference/llm/kv_pool.hpp"
#include "inference/talker.hpp"
#include "inference/thinker.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference {

/// The engine on top of a loaded model. Commands give sessions tasks. In each pass, the tasks name the stage that they
/// need, the scheduler chooses which of them take part, and each stage runs as one batched call. The engine knows tasks
/// and stages, but not what the tasks are about (engine/tasks/).
class omni_engine final : public engine {
public:
  using options = engine_options;

  /// Without a talker, all answers are text.
  omni_engine(std::shared_ptr<const thinker> model, std::shared_ptr<const talker> speaker, llm::kv_pool pool,
              options how, sink out);

  const engine_info& info() const override { return options_.info; }
  engine_capacity capacity() const override;
  void handle(command&& order) override;
  bool advance() override;
  bool idle() override;

  /// Pages of the pool that no session holds: all pages once no session is left. Some may hold cached prompts.
  int free_pages() const { return pool_.free_pages() + context_.prompts.own_pages(); }

private:
  // commands
  void apply(open_duplex&& order);
  void apply(open_chat&& order);
  void apply(submit_unit&& order);
  void apply(submit_turn&& order);
  void apply(cut&& order);
  void apply(cancel_turn&& order);
  void apply(close_session&& order);
  bool may_open(session_id id);
  bool knows(std::span<const std::int64_t> sampled, std::span<const std::int64_t> spoken) const;
  std::uint64_t choose_seed(std::optional<std::uint64_t> wanted) const;

  // a pass
  bool run_pass();
  void hand_out_voices();
  std::vector<ready_session> ready_tasks() const;
  std::vector<session_id> share_pages(schedule& plan);
  int sessions_by_pages() const;
  std::vector<page_claim> claims_of(const schedule& plan);
  session* youngest_with_pages(std::uint64_t after);
  bool parks(session& s);
  struct helpers_done {
    std::uint64_t pictures, texts;
  };
  void wait_for_helpers(const helpers_done& known);
  std::size_t count_busy() const;
  double share_of_units(const schedule& plan);
  void run_stages(const schedule& plan);
  void measure(engine_clock::time_point begin, engine_clock::time_point now, double share);
  void use_threads();

  std::shared_ptr<const thinker> model_;
  std::shared_ptr<const talker> talker_; ///< null: text only
  llm::kv_pool pool_;
  options options_;
  sink out_;
  task_context context_;
  session_table sessions_;
  stages stages_;
  std::uint64_t arrivals_ = 0;
  page_forecast forecast_;
  engine_clock::time_point windows_from_{}; ///< until then windows wait for company
  background_share share_;                  ///< of the engine's time
  idle_measurement idle_;
};

} // namespace parley::inference
