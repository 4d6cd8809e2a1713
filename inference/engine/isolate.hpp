#pragma once

#include <exception>
#include <span>
#include <vector>

namespace parley::inference {

/// The message of the exception being handled; LibTorch's come without the stack of calls. Keeps the exception alive;
/// does not throw.
struct words_of_exception {
  std::exception_ptr exception = std::current_exception();
  const char* text = "an exception of unknown type";

  words_of_exception() noexcept;
};

/// Runs `call` on all members at once. If that throws, runs it on each one alone, so that one bad session can't spoil
/// the batch. `call(std::span<Member>)` must leave its members unchanged if it throws. `failed(member, what)`, which
/// must not throw, is called for each member that throws alone. Returns the others.
template<class Member, class Call, class Failed>
std::vector<Member> run_isolated(std::vector<Member> members, Call call, Failed failed) {
  if (members.empty()) return members;
  try {
    call(std::span<Member>(members));
    return members;
  } catch (...) {
    if (members.size() == 1) {
      failed(members.front(), words_of_exception().text);
      return {};
    }
  }
  std::vector<Member> succeeded;
  for (auto& member : members) {
    try {
      call(std::span<Member>(&member, 1));
      succeeded.push_back(member);
    } catch (...) {
      failed(member, words_of_exception().text);
    }
  }
  return succeeded;
}

} // namespace parley::inference
