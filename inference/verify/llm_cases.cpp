#include "inference/llm/qwen3.hpp"
#include "inference/verify/families.hpp"

#include <ATen/ATen.h>

#include <numeric>

namespace parley::inference::verify {

namespace {

std::vector<token_id> ids_of(const at::Tensor& t) {
  auto wide = t.to(at::kLong).contiguous();
  return {wide.const_data_ptr<std::int64_t>(), wide.const_data_ptr<std::int64_t>() + wide.numel()};
}

/// The reference keeps [kv_heads, rows, head_dim].
at::Tensor by_head(const at::Tensor& rows) {
  return rows.permute({1, 0, 2});
}

struct replay {
  const llm::qwen3& model;
  llm::kv_pool pool;

  at::Tensor feed(llm::kv_cache& cache, std::span<const token_id> ids, llm::forward_trace* trace = nullptr,
                  std::int64_t shift = 0) const {
    std::vector<std::int64_t> all(ids.size());
    std::iota(all.begin(), all.end(), 0);
    llm::sequence_rows rows{&cache, static_cast<std::int64_t>(ids.size()), shift};
    return model.forward(model.embed(ids), {&rows, 1}, all, trace);
  }
};

} // namespace

void replay_llm(golden_set& files, const std::string& stem, report& out) {
  const auto& cases = files.cases(stem);
  const auto& golden = files.tensors(stem);
  llm::qwen3 model(files.config().llm, files.view("llm."));
  replay run{model, llm::kv_pool(files.config().llm, 4, 512, files.dtype(), files.device())};
  auto ids = ids_of(golden.tensor("prefill.ids"));
  auto last_layer = files.config().llm.layers - 1;

  auto cache = run.pool.open();
  auto last = at::Tensor();
  out.run(stem, "prefill", thinker_tolerance, [&](case_check& check) {
    llm::forward_trace trace;
    auto hidden = run.feed(cache, ids, &trace);
    auto logits = model.logits(hidden);
    for (auto i = std::size_t{0}; i < trace.hiddens.size(); ++i)
      check.close("hidden", trace.hiddens[i], golden_of(golden, "prefill.hidden." + std::to_string(i)));
    check.exact("argmax", at::equal(logits.argmax(-1).cpu(), golden.tensor("prefill.logits_argmax").to(at::kLong)));
    const auto tail = golden_of(golden, "prefill.logits_last8");
    const auto rows = tail.count / logits.size(1);
    check.close("logits", logits.narrow(0, logits.size(0) - rows, rows), tail);
    check.close("k0", by_head(cache.keys(0)), golden_of(golden, "prefill.k0"));
    check.close("v0", by_head(cache.values(0)), golden_of(golden, "prefill.v0"));
    check.close("klast", by_head(cache.keys(last_layer)), golden_of(golden, "prefill.klast"));
    if (const auto values = find_golden(golden, "prefill.vlast"))
      check.close("vlast", by_head(cache.values(last_layer)), *values);
    last = logits.narrow(0, logits.size(0) - 1, 1);
  });

  out.run(stem, "chunked", thinker_tolerance, [&](case_check& check) {
    auto mine = run.pool.open();
    auto hidden = at::Tensor();
    for (auto first = std::size_t{0}; first < ids.size(); first += 7)
      hidden = run.feed(mine, std::span(ids).subspan(first, std::min<std::size_t>(7, ids.size() - first)));
    check.close("logits", model.logits(hidden.narrow(0, hidden.size(0) - 1, 1)).squeeze(0),
                golden_of(golden, "chunked.logits_last"));
  });

  out.run(stem, "drop", thinker_tolerance, [&](case_check& check) {
    auto mine = run.pool.open();
    run.feed(mine, ids);
    const auto& drop = cases.at("drop");
    mine.drop(drop.at("preserve"), drop.at("length"), model.positions());
    check.equal("new_len", mine.length(), drop.at("new_len").get<std::int64_t>());
    check.close("k0", by_head(mine.keys(0)), golden_of(golden, "drop.k0"));
    check.close("klast", by_head(mine.keys(last_layer)), golden_of(golden, "drop.klast"));
    check.close("vlast", by_head(mine.values(last_layer)), golden_of(golden, "drop.vlast"));
  });

  out.run(stem, "far", thinker_tolerance, [&](case_check& check) {
    auto mine = run.pool.open();
    auto expected = golden.tensor("far.hidden_last");
    auto some = std::span(ids).first(static_cast<std::size_t>(expected.size(0)));
    check.close("hidden", run.feed(mine, some, nullptr, 8000), expected);
  });

  out.run(stem, "decode", thinker_tolerance, [&](case_check& check) {
    const auto expected = golden_of(golden, "decode.logits");
    const auto steps = expected.count / last.size(1);
    std::vector<token_id> tokens;
    std::vector<at::Tensor> rows;
    auto logits = last;
    for (auto step = std::int64_t{0}; step < steps; ++step) {
      auto token = logits.argmax(-1).item<std::int64_t>();
      tokens.push_back(token);
      logits = model.logits(run.feed(cache, {&token, 1}));
      rows.push_back(logits);
    }
    check.equal("ids", tokens, cases.at("decode_ids").get<std::vector<token_id>>());
    check.close("logits", at::cat(rows), expected);
  });
}

} // namespace parley::inference::verify
