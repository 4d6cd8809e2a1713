#pragma once

#include "conversation/message.hpp"
#include "protocol/json/field_reader.hpp"

#include <string>
#include <vector>

namespace parley::protocol {

/// Puts the results of calls into the order of their calls: the model is shown no ids, so order is what says which is whose
/// (docs/protocol.md 3.8). `ids`: for each message the id of the call whose result it is; empty = of the first call that has
/// none. Refuses a result without a call, a second one of the same call, and a call without one beside others that have
/// one. `from` is the list.
void order_results(field_reader& in, const field& from, const std::vector<std::string>& ids,
                   std::vector<conversation::message>& all);

} // namespace parley::protocol
