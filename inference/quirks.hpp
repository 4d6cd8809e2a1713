#pragma once

namespace parley::inference {

/// Where the reference deviates from its documentation, or from what a user would want (docs/model/thinker.md 7b).
/// `true` copies the reference. The defaults are the server's; `literal` is what `verify` replays and what
/// `engine.reference_quirks` sets. Defects that the server cannot have need no switch: units are gathered before the
/// engine (docs/model/thinker.md 7b 6, 9), each session has its own caches (5, 13, 14), a chat answer is reported as it
/// was sampled (7, 10-12).
struct quirks {
  /// `listen_prob_scale` and `listen_top_k` act on `<|im_end|>` instead of `<|listen|>`, and the scale multiplies the
  /// logit instead of the probability.
  bool listen_controls_act_on_im_end = false;

  /// The duplex repetition penalty divides negative logits too, which raises them. The model was tuned with it.
  bool penalty_divides_negative_logits = true;

  /// A unit that ends `… <|turn_eos|> <|listen|>` loses its text and its end of turn. Without the quirk both are sent,
  /// and the next unit listens.
  bool listen_after_turn_end_drops_text = false;

  /// A unit's first token, if it is text, is never sent.
  bool first_text_token_is_lost = false;

  /// The chat prompt closes the user's turn twice.
  bool chat_im_end_is_doubled = false;

  /// Special tokens are part of the visible chat text.
  bool chat_text_shows_special_tokens = false;

  /// A turn's sound begins with 0.16 s of silence, and every short sound of a unit, not only the turn's first, is
  /// padded in front to one second.
  bool sound_is_padded_in_front = false;

  /// A speaking unit with too few speech tokens sends one second of silence.
  bool missing_sound_is_silence = false;

  /// An interruption resets the vocoder's state of the turn, but not that of the speech token model.
  bool interruption_keeps_speech_model = false;

  /// The speaker network divides its last pooling window, if that is partial and padding counts, by the number of its
  /// elements for every opset, like onnxruntime 1.31, with which the recordings were made. Without the quirk, a file
  /// before opset 19 runs as in the onnxruntime that the reference requires (at most 1.21), which divides by the whole
  /// window. In the published network padding does not count, so both give the same.
  bool partial_pools_ignore_opset = false;

  /// The sounds of a prompt, and the last piece of a long one, are padded to the longest of them, and the padding is heard:
  /// what they sound like depends on the others, and many short sounds cost as much as many long ones.
  bool clips_are_padded = false;

  static constexpr quirks literal() { return {true, true, true, true, true, true, true, true, true, true, true}; }
};

} // namespace parley::inference
