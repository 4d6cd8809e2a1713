#pragma once

#include <string>
#include <vector>

// How likely the tokens of an answer were (docs/protocol.md 3.10).
namespace parley::conversation {

struct token_chance {
  std::string bytes;  ///< of the token's text; a part of a character, maybe
  double logprob = 0; ///< natural logarithm of its probability, before temperature and penalties
};

/// A token of the answer, and the likeliest in its place.
struct token_score {
  token_chance chosen;
  std::vector<token_chance> likeliest = {}; ///< the likeliest first
};

/// All members, for archives (actors/bytes/byte_archive.hpp).
template<class A>
void fields(A& a, token_chance& of) {
  auto& [bytes, logprob] = of;
  a(bytes, logprob);
}

template<class A>
void fields(A& a, token_score& of) {
  auto& [chosen, likeliest] = of;
  a(chosen, likeliest);
}

} // namespace parley::conversation
