#!/usr/bin/env python3
"""Who finds speech in noise: clips by script (espeak-ng and flite speak; rooms, fans, keyboards, music, coughs and a babble of voices are made
here), and for each detector how much speech it misses, how often it hears some where there is none, and how late it is. A turn takes 60 ms of
speech to begin and 500 ms without to end, as on the server.
  bench/voice_activity.py [--build build/release] [--each]      --each: a row for each noise
WebRTC's detector is judged too if the Python package webrtcvad is there (webrtcvad-wheels on PyPI)."""
import argparse
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np

RATE, FRAME = 16_000, 320
SENTENCES = ["What is your name?", "Tell me the days of the week, please.", "No.", "Could you say that again a little slower?", "Yes, that is right.",
             "Six.", "I would like to know what the capital of France is.", "Stop."]
ESPEAK = ["en-us", "en-gb", "en-us+f2", "en-us+f5", "en-gb+m3", "en-us+whisper"]
FLITE = ["slt", "rms", "awb", "kal16"]


def resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    return np.interp(np.arange(0, len(samples) - 1, rate / RATE), np.arange(len(samples)), samples).astype(np.float32)


def wav(data: bytes) -> np.ndarray:
    rate, at = int.from_bytes(data[24:28], "little"), data.index(b"data") + 8
    data = data[at : len(data) - (len(data) - at) % 2]
    return resampled(np.frombuffer(data, "<i2").astype(np.float32) / 32768, rate)


def spoken(text: str, voice: str, folder: Path) -> np.ndarray:
    """Without the silence around it, at a root mean square of 1."""
    if voice in FLITE:
        path = folder / "flite.wav"
        subprocess.run(["flite", "-voice", voice, "-t", text, "-o", path], check=True)
        samples = wav(path.read_bytes())
    else:
        samples = wav(subprocess.run(["espeak-ng", "--stdout", "-v", voice, text], check=True, capture_output=True).stdout)
    loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
    samples = samples[loud[0] : loud[-1]]
    return samples / np.sqrt(np.mean(samples**2))


# ---- noises, at a root mean square of 1


def shaped(rng, count: int, slope: float) -> np.ndarray:
    spectrum = np.fft.rfft(rng.normal(size=count))
    hertz = np.maximum(np.fft.rfftfreq(count, 1 / RATE), 20)
    return np.fft.irfft(spectrum * hertz**slope, count)


def hum(rng, count):
    t = np.arange(count) / RATE
    return sum(np.sin(2 * np.pi * 50 * k * t + rng.uniform(0, 6)) / k for k in (1, 2, 3, 4, 6)) + 0.05 * rng.normal(size=count)


def keys(rng, count):
    out = 0.003 * rng.normal(size=count)
    at = 0
    while (at := at + int(rng.exponential(0.18) * RATE) + 600) < count - 800:
        click = rng.normal(size=800) * np.exp(-np.arange(800) / rng.uniform(40, 160))
        out[at : at + 800] += click * rng.uniform(0.3, 1)
    return out


def music(rng, count):
    t, out = np.arange(count) / RATE, np.zeros(count)
    for begin in np.arange(0, count / RATE, 0.5):
        root = 220 * 2 ** (rng.integers(0, 12) / 12)
        for note in (1, 1.26, 1.5):
            inside = (t >= begin) & (t < begin + 0.6)
            for k in (1, 2, 3):
                out[inside] += np.sin(2 * np.pi * root * note * k * t[inside]) / k * np.exp(-3 * (t[inside] - begin))
    return out + 0.003 * rng.normal(size=count)


def coughs(rng, count):
    out = 0.003 * rng.normal(size=count)
    at = 0
    while (at := at + int(rng.uniform(1.5, 4) * RATE)) < count - 6000:
        for _ in range(rng.integers(1, 3)):
            length = int(rng.uniform(0.12, 0.3) * RATE)
            burst = shaped(rng, length, -0.3) * np.minimum(1, np.arange(length) / 160) * np.exp(-np.arange(length) / length * 4)
            out[at : at + length] += burst / np.abs(burst).max()
            if (at := at + length + int(0.1 * RATE)) > count - 6000:
                break
    return out


def babble_of(folder: Path):
    pieces = [spoken(text, voice, folder) for text in SENTENCES if len(text) > 10 for voice in ESPEAK[:5] + FLITE]

    def babble(rng, count):
        out = np.zeros(count)
        for _ in range(10):
            at = -int(rng.uniform(0, RATE))
            while at < count:
                piece = pieces[rng.integers(len(pieces))]
                begin, end = max(at, 0), min(at + len(piece), count)
                if end > begin:
                    out[begin:end] += piece[begin - at : end - at]
                at += len(piece) + int(rng.uniform(0, 0.5) * RATE)
        return out

    return babble


def decibels(value: float) -> float:
    return 10 ** (value / 20)


class Clip:
    """Samples and where speech is in them, in samples."""

    def __init__(self, name, samples, speech):
        self.name, self.speech = name, speech
        self.samples = np.clip(samples, -1, 1).astype(np.float32)


def clips(folder: Path):
    rng = np.random.default_rng(1)
    noises = {"white": lambda r, n: r.normal(size=n), "pink": lambda r, n: shaped(r, n, -0.5), "babble": babble_of(folder), "hum": hum, "keys": keys,
              "music": music, "coughs": coughs}

    def unit(samples):
        return samples / np.sqrt(np.mean(samples**2))

    def conversation(name, noise, snr, level):
        parts, speech, at = [], [], 0
        for i in range(10):
            pause = np.zeros(int(rng.uniform(1.5, 3) * RATE))
            words = spoken(SENTENCES[rng.integers(len(SENTENCES))], (ESPEAK + FLITE)[i], folder)
            speech.append((at + len(pause), at + len(pause) + len(words)))
            parts += [pause, words]
            at += len(pause) + len(words)
        samples = np.concatenate([*parts, np.zeros(2 * RATE)])
        floor = decibels(-75) * rng.normal(size=len(samples))
        gain = decibels(level)
        samples = samples * gain + floor
        if noise:
            samples += unit(noises[noise](rng, len(samples))) * gain * decibels(-snr)
        return Clip(name, samples, speech)

    for level in (-40, -30, -20, -12):  # of the speech's root mean square; peaks are 12 to 15 dB higher
        yield conversation("quiet room", None, 0, level)
    for noise in noises:
        for snr in (20, 10, 5, 0):
            yield conversation(noise, noise, snr, -26)
        for level in (-50, -35, -20):
            yield Clip(f"{noise} alone", unit(noises[noise](rng, 60 * RATE)) * decibels(level), [])
    yield Clip("silence", np.zeros(60 * RATE), [])


def turns(frames: str):
    """As protocol/speech/voice_activity does: when a turn was found, and when its end was, in seconds."""
    out, heard, quiet, began = [], 0, 0, None
    for i, digit in enumerate(frames):
        now, speech = (i + 1) * 0.02, digit == "1"
        if began is None:
            heard = heard + 20 if speech else max(0, heard - 20)
            if speech and heard >= 60:
                began, quiet = now, 0
        else:
            quiet = 0 if speech else quiet + 20
            if quiet >= 500:
                out.append((began, now))
                began, heard = None, 0
    return out + ([(began, len(frames) * 0.02)] if began is not None else [])


class Score:
    def __init__(self):
        self.utterances = self.missed = self.false = 0
        self.quiet_minutes, self.starts, self.ends, self.lost, self.speech_seconds, self.us = 0.0, [], [], 0.0, 0.0, []

    def add(self, clip: Clip, frames: str, us: float):
        found = turns(frames)
        self.us.append(us)
        for begin, end in ((b / RATE, e / RATE) for b, e in clip.speech):
            self.utterances += 1
            mine = [t for t in found if t[0] < end + 0.3 and t[1] > begin]
            self.speech_seconds += end - begin
            self.missed += not mine
            covered = sum(max(0.0, min(end, t[1] - 0.5) - max(begin, t[0] - 0.06)) for t in mine)
            self.lost += max(0.0, end - begin - covered)
            if mine and mine[0][0] >= begin:
                self.starts.append((mine[0][0] - begin) * 1000)
            if mine and mine[-1][1] < end + 1.5:
                self.ends.append((mine[-1][1] - end) * 1000)
        self.false += sum(not any(t[0] < e / RATE + 0.3 and t[1] > b / RATE for b, e in clip.speech) for t in found)
        self.quiet_minutes += (len(clip.samples) / RATE - sum(e - b for b, e in clip.speech) / RATE) / 60

    def row(self, *names):
        middle = lambda values: f"{statistics.median(values):.0f}" if values else "–"
        late = f"{100 * (1 - len(self.ends) / self.utterances):.0f} %" if self.utterances else "–"
        share = f"{100 * self.missed / self.utterances:.1f} %" if self.utterances else "–"
        lost = f"{100 * self.lost / self.speech_seconds:.1f} %" if self.speech_seconds else "–"
        print("|", *names, f"| {share} | {lost} | {self.false / self.quiet_minutes:.2f} | {middle(self.starts)} ms | {middle(self.ends)} ms | {late} "
              f"| {statistics.mean(self.us) / 1000:.3f} ms |", flush=True)


def ours(build: Path, detector: str, threshold: str, paths):
    out = subprocess.run([build / "voice_activity", detector, threshold, *paths], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        us, frames = line.split()
        yield frames, float(us)


def webrtc(mode: int, made):
    import time
    import webrtcvad
    for clip in made:
        detector = webrtcvad.Vad(mode)
        words = (clip.samples * 32767).astype("<i2").tobytes()
        began = time.process_time()
        frames = "".join("01"[detector.is_speech(words[at : at + 2 * FRAME], RATE)] for at in range(0, len(words) - 2 * FRAME + 1, 2 * FRAME))
        yield frames, (time.process_time() - began) * 1e6 / (len(clip.samples) / RATE)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", type=Path, default=Path("build/release"))
    p.add_argument("--each", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = list(clips(folder))
        paths = []
        for i, clip in enumerate(made):
            paths.append(folder / f"{i}.f32")
            clip.samples.tofile(paths[-1])
        detectors = {"loudness": lambda: ours(a.build, "loudness", "0.5", paths), "Silero, 0.5": lambda: ours(a.build, "silero", "0.5", paths),
                     "Silero, 0.3": lambda: ours(a.build, "silero", "0.3", paths)}
        try:
            import webrtcvad  # noqa: F401
            detectors |= {f"WebRTC, mode {mode}": lambda mode=mode: webrtc(mode, made) for mode in (2, 3)}
        except ImportError:
            pass
        print("| detector | " + ("noise | " if a.each else "") + "utterances missed | of their time | false turns a minute | found after | end found after | end not found in 1.5 s | CPU a second |")
        print("|---|" + ("---|" if a.each else "") + "---|---|---|---|---|---|---|")
        for detector, run in detectors.items():
            scores = {}
            for clip, (frames, us) in zip(made, run()):
                for key in ["all"] + ([clip.name] if a.each else []):
                    scores.setdefault(key, Score()).add(clip, frames, us)
            for key, score in scores.items():
                score.row(*([f"{detector} | {key}"] if a.each else [detector]))


if __name__ == "__main__":
    main()
