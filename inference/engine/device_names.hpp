#pragma once

#include <string>
#include <vector>

namespace parley::inference {

/// The devices that `worker.device` names: those of a list like "cuda:0,cuda:1", or with "cuda:all" every GPU of this
/// machine; otherwise the name itself. Throws std::runtime_error, in one line, if all are wanted and there is none.
std::vector<std::string> devices_named(const std::string& text);

} // namespace parley::inference
