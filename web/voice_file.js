import { fromSamples } from "./base64.js";
import { words } from "./words.js";

const RATE = 16000;
const SHORTEST_S = 0.25;
const LONGEST_S = 60;

/** Any sound file that the browser can play, as a reference voice: base64 of 16 kHz mono float32. Throws words for people. */
export async function readVoice(file) {
  let sound;
  try {
    sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new Error(words("settings.voice.unread"));
  }
  if (sound.duration < SHORTEST_S) throw new Error(words("settings.voice.short"));
  const mono = new Float32Array(Math.min(sound.length, LONGEST_S * RATE));
  for (let channel = 0; channel < sound.numberOfChannels; channel++) {
    const samples = sound.getChannelData(channel);
    for (let i = 0; i < mono.length; i++) mono[i] += samples[i] / sound.numberOfChannels;
  }
  return { base64: fromSamples(mono), seconds: mono.length / RATE };
}
