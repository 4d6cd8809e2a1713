#pragma once

#include "base/expect.hpp"

#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace parley::base {

/// `done`, called exactly once: by whoever is asked, or with `otherwise` when the question is lost because its actor has ended.
template<class... Answer>
std::function<void(Answer...)> answered(std::type_identity_t<std::function<void(Answer...)>> done,
                                        std::type_identity_t<Answer>... otherwise) {
  struct question {
    std::function<void(Answer...)> done{};
    std::tuple<Answer...> otherwise;
    explicit question(Answer&&... lost) : otherwise(std::move(lost)...) {}
    question(const question&) = delete;
    ~question() {
      try {
        if (done) std::apply(done, std::move(otherwise));
      } catch (...) {
        PARLEY_EXPECT(false, "whoever asks can be told that the question is lost");
      }
    }
  };
  auto asked = std::make_shared<question>(std::move(otherwise)...);
  asked->done = std::move(done);
  return [asked = std::move(asked)](Answer... answer) {
    if (const auto tell = std::exchange(asked->done, nullptr)) tell(std::move(answer)...);
  };
}

} // namespace parley::base
