#pragma once

#include "config/settings.hpp"
#include "inference/engine.hpp"

#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace parley::inference::testing {

/// An engine as the server makes it, over the embedded model on this device, with room for a few sessions.
struct device_engine {
  explicit device_engine(c10::Device device, config::settings settings = {});

  void handle(command&& order) { engine->handle(std::move(order)); }

  /// Until there is nothing left to do.
  void run();

  std::vector<event> events;
  std::unique_ptr<inference::engine> engine;
};

/// Sessions 1 to 4: sampled with a reference voice, greedy and seeing frames, with a sliding window, and with the same
/// prompt and voice as the first. Session 5 is a spoken chat turn about a picture.
inline constexpr session_id plain = 1, seeing = 2, sliding = 3, sharing = 4, chatting = 5;

/// Has these conversations on an engine, `units` seconds of each duplex session.
void converse(device_engine& with, int units);

/// What a session was answered: its texts, every text and speech token, and how much sound. One line an answer.
std::vector<std::string> lines_of(const device_engine& engine, session_id id);

/// All sound of a session, one after the other.
std::vector<float> sound_of(const device_engine& engine, session_id id);

/// A second of spoken words, 16 kHz, another one for each number.
pcm spoken_second(int number);

open_duplex plain_session(session_id id);

} // namespace parley::inference::testing
