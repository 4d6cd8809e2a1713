#include "inference/engine/isolate.hpp"

#include <c10/util/Exception.h>

namespace parley::inference {

words_of_exception::words_of_exception() noexcept {
  try {
    std::rethrow_exception(exception);
  } catch (const c10::Error& e) {
    text = e.what_without_backtrace();
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
}

} // namespace parley::inference
