#include "inference/kernels/device_graph.hpp"

#include "inference/logger.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#ifdef PARLEY_CUDA_GRAPHS
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#endif

namespace parley::inference {

namespace {

std::atomic<bool> calls_preferred = false;

} // namespace

#ifdef PARLEY_CUDA_GRAPHS

/// One memory pool for what all graphs hold between their kernels: they are launched one after another, and each result is
/// copied before the next launch. When its last graph goes, LibTorch gives it up, and it cannot be used again.
class shared_pool {
public:
  shared_pool() {
    const std::scoped_lock hold(lock_);
    if (graphs_++ == 0) pool_ = at::cuda::graph_pool_handle();
    id_ = pool_;
  }
  ~shared_pool() {
    const std::scoped_lock hold(lock_);
    --graphs_;
  }
  shared_pool(const shared_pool&) = delete;
  shared_pool& operator=(const shared_pool&) = delete;

  at::cuda::MempoolId_t id() const { return id_; }

private:
  static inline std::mutex lock_;
  static inline std::size_t graphs_ = 0;
  static inline at::cuda::MempoolId_t pool_{};
  at::cuda::MempoolId_t id_;
};

/// A recorded call.
class graph_cache::recorded {
public:
  recorded(at::Device device, const std::function<at::Tensor()>& work) {
    // c10::cuda's own guard would have to be linked with CUDA's runtime.
    const c10::StreamGuard elsewhere(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
    graph_.capture_begin(pool_.id(), cudaStreamCaptureModeThreadLocal);
    try {
      result_ = work();
    } catch (...) {
      try {
        graph_.capture_end();
      } catch (const c10::Error&) { // the first error says what was wrong
      }
      throw;
    }
    graph_.capture_end();
  }

  at::Tensor replay() {
    graph_.replay();
    return result_.clone();
  }

private:
  shared_pool pool_; ///< before the graph, which goes first
  at::cuda::CUDAGraph graph_;
  at::Tensor result_;
};

static bool records(at::Device device) {
  return device.is_cuda();
}

#else

class graph_cache::recorded {
public:
  recorded(at::Device, const std::function<at::Tensor()>&) {}
  at::Tensor replay() { return {}; }
};

static bool records(at::Device) {
  return false;
}

#endif

struct graph_cache::graph {
  packed_upload numbers;
  std::vector<at::Tensor> inputs;
  std::uint64_t last_call = 0;
  std::optional<recorded> whole;
  bool refused = false; ///< it could not be recorded
};

at::Tensor graph_cache::run(const key& shape, packed_upload numbers, std::span<const at::Tensor> inputs,
                            at::Device device, const work& what) {
  if (calls_preferred || (device.is_cuda() && !records(device))) {
    numbers.send(device);
    return what(numbers, inputs);
  }
  const auto found = graphs_.find(shape);
  if (found == graphs_.end()) {
    while (graphs_.size() >= most_)
      graphs_.erase(std::ranges::min_element(graphs_, {}, [](const auto& each) { return each.second->last_call; }));
    auto fresh = std::make_shared<graph>();
    numbers.send(device);
    fresh->numbers = std::move(numbers);
    for (const auto& input : inputs) fresh->inputs.push_back(input.clone(at::MemoryFormat::Contiguous));
    fresh->last_call = ++calls_;
    auto result = what(fresh->numbers, fresh->inputs);
    graphs_.emplace(shape, std::move(fresh));
    return result;
  }
  const auto known = found->second;
  known->last_call = ++calls_;
  known->numbers.send_again(numbers);
  for (std::size_t i = 0; i < inputs.size(); ++i) known->inputs[i].copy_(inputs[i]);
  if (!records(device) || known->refused) return what(known->numbers, known->inputs);
  if (!known->whole) {
    try {
      known->whole.emplace(device, [&] { return what(known->numbers, known->inputs); });
    } catch (const c10::Error& e) {
      known->refused = true;
      log_info(std::string("engine: a graph could not be recorded, its kernels are launched one by one: ") +
               e.what_without_backtrace());
      return what(known->numbers, known->inputs);
    }
  }
  return known->whole->replay();
}

void graph_cache::prefer_calls(bool calls) {
  calls_preferred = calls;
}

std::int64_t padded_count(std::int64_t count) {
  constexpr std::int64_t sizes[] = {1, 2, 4, 8, 16, 24, 32, 48, 64}, step = 16;
  const auto* enough = std::ranges::lower_bound(sizes, count);
  return enough != std::end(sizes) ? *enough : (count + step - 1) / step * step;
}

} // namespace parley::inference
