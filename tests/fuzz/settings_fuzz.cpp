#include "config/load.hpp"
#include "tests/fuzz/fuzz.hpp"

// A settings file, and the same bytes as a command-line override.
void parley::test::fuzz(std::string_view bytes) {
  try {
    config::settings settings;
    config::load_text(settings, bytes, "fuzz.toml");
    config::check_whole(settings);
  } catch (const config::settings_error& e) {
    expect(*e.what() != '\0', "an error has words");
  }
  try {
    config::settings settings;
    config::apply_override(settings, bytes);
  } catch (const config::settings_error& e) {
    expect(*e.what() != '\0', "an error has words");
  }
}
