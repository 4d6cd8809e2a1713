#pragma once

namespace parley::inference {

/// What a session needs next. Its thinker and its talker each have a stage.
enum class stage {
  idle,
  voice,       ///< its reference voice, prepared elsewhere
  same_prompt, ///< its prompt, which another session is prefilling
  look,        ///< its pictures, sliced elsewhere
  read,        ///< its text, cut into tokens elsewhere
  hear,        ///< encode a second of its stream into rows
  see,         ///< encode pieces of pictures into rows
  clips,       ///< encode whole sounds of its prompt into rows
  slide,       ///< move the rows of its cache, layer by layer
  prefill,     ///< prefill rows into its cache
  decode,      ///< feed one token
  speak,       ///< choose one speech token
  sound,       ///< turn a window of speech tokens into sound
};

} // namespace parley::inference
