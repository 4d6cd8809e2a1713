#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <string>

namespace parley::config {
enum class dtype;
}

namespace parley::inference {

/// Models with a smaller hidden size are small: a second thread or a GPU would cost them more time than it saves.
inline constexpr int small_hidden_size = 1024;

/// The device that `worker.device` names. "auto" is the machine's first accelerator, but the CPU for a small model;
/// "cuda" is its first GPU. Throws std::runtime_error, in one line, when the machine has no such device.
at::Device find_device(const std::string& name, int hidden_size);

/// The number format that `engine.dtype` means on this device.
at::ScalarType find_dtype(config::dtype wanted, at::Device device, int hidden_size);

/// How GPUs multiply float32 numbers: as they are, or rounded to TF32 first, which is several times as fast.
enum class float32_products { exact, rounded };

/// Sets up LibTorch for computing on accelerators, for the whole process. Costs nothing on the CPU.
void set_up_accelerators(float32_products how);

/// Makes a check that reads back a number stored on the device: false once the device is lost, as a GPU is after a
/// failed kernel. It allocates nothing there, so a device without free memory is not taken for lost. Does not throw.
std::function<bool()> device_probe(at::Device device);

} // namespace parley::inference
