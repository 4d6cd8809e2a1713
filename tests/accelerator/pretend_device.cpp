#include "tests/accelerator/pretend_device.hpp"

#include "tests/accelerator/device_memory.hpp"
#include "tests/accelerator/pretend_kernels.hpp"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/record_function.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace parley::inference::testing {

namespace {

constexpr auto kind = c10::DeviceType::PrivateUse1;
const c10::Device the_device(kind, 0);

// ---- what it was asked to do ----------------------------------------------------------------------------------------

std::mutex work_mutex;
device_work work;
constexpr long for_good = std::numeric_limits<long>::max();
std::atomic<long> until_broken = for_good; ///< operators

void require_working() {
  if (until_broken == for_good) return;
  TORCH_CHECK(until_broken-- > 0, "the pretend device has failed");
}

void count_one(long device_work::*what) {
  require_working();
  const std::lock_guard lock(work_mutex);
  ++(work.*what);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

struct device_allocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &return_device_memory, the_device};
    auto* begin = take_device_memory(bytes);
    TORCH_CHECK(begin, "the pretend device: out of memory");
    return {begin, begin, &return_device_memory, the_device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &return_device_memory; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "the pretend device: copy_data");
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex) override {
    return {std::size_t{16} << 30, std::size_t{16} << 30};
  }
};
device_allocator allocator;
c10::AllocatorRegisterer<kind> registered_allocator(&allocator);

bool on_device(const at::Tensor& t) {
  return t.defined() && t.device().type() == kind;
}

bool on_device(const std::optional<at::Tensor>& t) {
  return t && on_device(*t);
}

} // namespace

void count_kernel(const std::string& name) {
  require_working();
  const std::lock_guard lock(work_mutex);
  ++work.kernels;
  ++work.by_kernel[name];
}

at::Tensor as_host(const at::Tensor& t, memory_access& access) {
  if (!on_device(t)) return t;
  const auto* storage = static_cast<const char*>(t.storage().data());
  if (storage) access.open(storage);
  if (!storage || t.numel() == 0) return at::empty_strided(t.sizes(), t.strides(), t.options().device(at::kCPU));
  auto* first = const_cast<char*>(storage) + t.storage_offset() * static_cast<std::int64_t>(t.element_size());
  return at::from_blob(first, t.sizes(), t.strides(), at::TensorOptions().dtype(t.dtype()).device(at::kCPU));
}

at::Tensor to_device(const at::Tensor& host, memory_access& access) {
  if (!host.defined()) return host;
  auto made = at::empty_strided(host.sizes(), host.strides(), host.options().device(the_device));
  as_host(made, access).copy_(host);
  return made;
}

namespace {

std::optional<at::Tensor> as_host(const std::optional<at::Tensor>& t, memory_access& access) {
  return t && t->defined() ? std::optional(as_host(*t, access)) : std::nullopt;
}

// ---- operators ------------------------------------------------------------------------------------------------------

/// As on CUDA: indices may be on the host.
bool may_mix(const std::string& name) {
  return name.starts_with("aten::index") && name != "aten::index_select" && name != "aten::index_copy" &&
         name != "aten::index_add";
}

/// One call of an operator, done by the CPU's in the device's memory.
class boxed_call {
public:
  boxed_call(const c10::OperatorHandle& op, torch::jit::Stack& stack) : schema_(op.schema()), stack_(stack) {
    const auto first = stack.size() - schema_.arguments().size();
    for (std::size_t i = 0; i < schema_.arguments().size(); ++i) {
      argument_ = schema_.arguments()[i].name();
      take(stack[first + i]);
    }
    TORCH_CHECK(!(device_ && host_) || may_mix(schema_.name()), "the pretend device: ", schema_.name(), ": argument `",
                on_host_, "` is on the CPU, others are on the device");
    count_kernel(schema_.name());
    op.callBoxed(&stack);
    for (auto i = stack.size() - schema_.returns().size(); i < stack.size(); ++i) give(stack[i]);
  }

private:
  void take(c10::IValue& v) {
    if (v.isTensor()) {
      v = host_of(v.toTensor());
    } else if (v.isTensorList()) {
      std::vector<at::Tensor> all;
      for (const auto& t : v.toTensorVector()) all.push_back(host_of(t));
      v = c10::List<at::Tensor>(all);
    } else if (v.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> all;
      for (const std::optional<at::Tensor> t : v.toOptionalTensorList())
        all.push_back(t ? std::optional(host_of(*t)) : std::nullopt);
      v = all;
    } else if (v.isDevice()) {
      device_ = true;
      v = c10::Device(at::kCPU);
    }
  }

  at::Tensor host_of(const at::Tensor& t) {
    if (!t.defined()) return t;
    if (!on_device(t)) {
      if (t.dim() > 0) on_host_ = argument_;
      host_ = host_ || t.dim() > 0;
      return t;
    }
    device_ = true;
    auto host = as_host(t, access_);
    originals_[host.unsafeGetTensorImpl()] = t;
    return host;
  }

  void give(c10::IValue& v) {
    if (v.isTensor()) {
      v = device_of(v.toTensor());
    } else if (v.isTensorList()) {
      std::vector<at::Tensor> all;
      for (const auto& t : v.toTensorVector()) all.push_back(device_of(t));
      v = c10::List<at::Tensor>(all);
    }
  }

  at::Tensor device_of(const at::Tensor& t) {
    if (!t.defined()) return t;
    if (const auto found = originals_.find(t.unsafeGetTensorImpl()); found != originals_.end()) {
      const auto& original = found->second;
      if (original.sizes() != t.sizes()) { // an `out` of no elements that the operator has resized
        const auto made = to_device(t, access_);
        auto* impl = original.unsafeGetTensorImpl();
        impl->set_storage_keep_dtype(made.storage());
        impl->set_sizes_and_strides(made.sizes(), made.strides(), made.storage_offset());
      }
      return original;
    }
    TORCH_CHECK(!t.storage().data() || !access_.covers(t.storage().data()), "the pretend device: ", schema_.name(),
                " made a view that is not known");
    return device_ ? to_device(t, access_) : t;
  }

  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  memory_access access_;
  std::map<c10::TensorImpl*, at::Tensor> originals_;
  bool device_ = false, host_ = false;
  std::string argument_, on_host_;
};

void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  boxed_call(op, *stack);
}

at::Tensor empty_sized(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                       std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_with_strides(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                              std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

at::Tensor copy_between(const at::Tensor& from, const at::Tensor& to, bool) {
  if (!on_device(from))
    count_one(&device_work::uploads);
  else if (!on_device(to))
    count_one(&device_work::downloads);
  else
    count_kernel("copy");
  memory_access access;
  auto into = as_host(to, access);
  into.copy_(as_host(from, access));
  return to;
}

at::Scalar number_of(const at::Tensor& t) {
  count_one(&device_work::downloads);
  memory_access access;
  return as_host(t, access).item();
}

// These two come here as one operator on CUDA as well; left alone, LibTorch would take them apart first.
at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                    at::IntArrayRef output_padding, std::int64_t groups) {
  TORCH_CHECK(on_device(x) && on_device(weight) && (!bias || !bias->defined() || on_device(bias)),
              "the pretend device: a convolution of two devices");
  TORCH_CHECK(x.scalar_type() == weight.scalar_type(), "the pretend device: a convolution of two dtypes");
  count_kernel("convolution");
  memory_access access;
  return to_device(at::convolution(as_host(x, access), as_host(weight, access), as_host(bias, access), stride, padding,
                                   dilation, transposed, output_padding, groups),
                   access);
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const std::optional<at::Tensor>& mask, double dropout, bool causal, std::optional<double> scale,
                     bool grouped) {
  TORCH_CHECK(on_device(q) && on_device(k) && on_device(v) && (!mask || !mask->defined() || on_device(mask)),
              "the pretend device: attention of two devices");
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && k.scalar_type() == v.scalar_type(),
              "the pretend device: attention of two dtypes");
  count_kernel("attention");
  memory_access access;
  return to_device(at::scaled_dot_product_attention(as_host(q, access), as_host(k, access), as_host(v, access),
                                                    as_host(mask, access), dropout, causal, scale, grouped),
                   access);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty_sized);
  m.impl("empty_strided", empty_with_strides);
  m.impl("_copy_from", copy_between);
  m.impl("_local_scalar_dense", number_of);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("convolution_overrideable", convolve);
  m.impl("scaled_dot_product_attention", attention);
  m.impl("native_layer_norm", torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
  m.impl("_fused_rms_norm", torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

// ---- the device -----------------------------------------------------------------------------------------------------

struct device_guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kind; }
  c10::Device exchangeDevice(c10::Device) const override { return the_device; }
  c10::Device getDevice() const override { return the_device; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, the_device); }
  c10::Stream getNewStream(c10::Device, int) const override { return c10::Stream(c10::Stream::DEFAULT, the_device); }
  c10::Stream exchangeStream(c10::Stream) const override { return c10::Stream(c10::Stream::DEFAULT, the_device); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, device_guard);

struct device_hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  at::Device getDeviceFromPtr(void* p) const override {
    return is_device_memory(p) ? the_device : at::Device(at::kCPU);
  }
};

std::unique_ptr<at::ObserverContext> count_call(const at::RecordFunction&) {
  if (memory_access::exists()) return nullptr;
  const std::lock_guard lock(work_mutex);
  ++work.calls;
  return nullptr;
}

[[maybe_unused]] const bool registered = [] {
  at::addGlobalCallback(at::RecordFunctionCallback(&count_call).scopes({at::RecordScope::FUNCTION}));
  c10::register_privateuse1_backend("pretend");
  at::RegisterPrivateUse1HooksInterface(new device_hooks);
  return true;
}();

} // namespace

c10::Device pretend_device() {
  return the_device;
}

device_work take_work() {
  const std::lock_guard lock(work_mutex);
  return std::exchange(work, {});
}

void break_device() {
  break_device_after(0);
}

void break_device_after(long operators) {
  until_broken = operators;
}

void mend_device() {
  until_broken = for_good;
}

} // namespace parley::inference::testing
