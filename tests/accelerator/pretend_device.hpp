#pragma once

#include <c10/core/Device.h>

#include <map>
#include <string>

namespace parley::inference::testing {

/// A stand-in for an accelerator, on the CPU: LibTorch's device "pretend:0". Host code that touches its memory dies,
/// operators that are given tensors of two devices throw, and what a GPU would be asked to do is counted. It computes
/// with the operators of the CPU, so it says nothing about a GPU's numbers, kernels or speed. Every binary that links it
/// has it.
c10::Device pretend_device();

/// What the device was asked to do. A copy from or to ordinary memory makes the host wait on a GPU, like a single number
/// that is read.
struct device_work {
  long kernels = 0; ///< copies within the device included
  long uploads = 0;
  long downloads = 0; ///< single numbers included
  long calls = 0;     ///< of operators by the host: views too, and what operators call
  std::map<std::string, long> by_kernel;
};

/// Since the last call.
device_work take_work();

/// From now on every operator on the device throws, as on a GPU whose kernel has failed.
void break_device();

/// The same after so many more operators.
void break_device_after(long operators);
void mend_device();

} // namespace parley::inference::testing
