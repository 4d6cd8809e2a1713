#pragma once

#include <exception>
#include <span>
#include <vector>

namespace parley::inference {

/// Runs `call` on all members at once; when that throws, on each alone, so that one bad session can't spoil the batch.
/// `call(std::span<Member>)` must leave its members as they were when it throws. `failed(member, what)` hears of each
/// member that throws alone. Returns those that succeeded.
template<class Member, class Call, class Failed>
std::vector<Member> run_isolated(std::vector<Member> members, Call call, Failed failed) {
  if (members.empty()) return members;
  try {
    call(std::span<Member>(members));
    return members;
  } catch (const std::exception& e) {
    if (members.size() == 1) {
      failed(members.front(), e.what());
      return {};
    }
  }
  std::vector<Member> succeeded;
  for (auto& member : members) {
    try {
      call(std::span<Member>(&member, 1));
      succeeded.push_back(member);
    } catch (const std::exception& e) {
      failed(member, e.what());
    }
  }
  return succeeded;
}

} // namespace parley::inference
