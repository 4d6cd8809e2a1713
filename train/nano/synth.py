"""Spoken questions by espeak-ng: a bank of clips as log-mel, and test clips as waveforms. usage: python -m nano.synth [clips] [processes]"""
import io, json, multiprocessing, random, subprocess, sys, time, wave
import numpy as np
from scipy.signal import fftconvolve, resample_poly
from . import mel
from .questions import HELD_WORDS, TRAIN_WORDS, draw
from .run import work

TRAIN_VOICES = ("en-us en en-gb-x-rp en-gb-scotland en-029 en-us-nyc en-gb-x-gbcwmd en-us+m1 en-us+m3 en-us+m5 en-us+m6 en-us+f1 en-us+f2 en-us+f5 en+m2 en+m4 en+f2 en+f4 "
                "en+m8 en-gb-x-rp+m3 en-gb-x-rp+f2 en-us+f4 en-029+f1 en-us-nyc+m2 en-gb-scotland+f3 en-us+klatt").split()
HELD_VOICES = "en-us+m7 en-gb-x-gbclan en+f1 en-us+f3 en+m6 en-us-nyc+f5 en-gb-x-rp+m4 en-us+Andy".split()
RATE = 16000


def say(text, voice, speed=175, pitch=50, gap=None):
    """float32 samples at 16 kHz, silence trimmed to 10 ms. gap: (word index, ms), a pause inside the sentence."""
    args = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout"]
    if gap:
        words = text.split()
        text, args = " ".join(words[:gap[0]]) + f' <break time="{gap[1]}ms"/> ' + " ".join(words[gap[0]:]), args + ["-m"]
    out = subprocess.run(args + [text], capture_output=True, check=True).stdout
    with wave.open(io.BytesIO(out)) as w:
        rate = w.getframerate()
    y = np.frombuffer(out[44:len(out) // 2 * 2], dtype="<i2").astype(np.float32) / 32768
    y = resample_poly(y, 320, 441).astype(np.float32) if rate == 22050 else y
    loud = np.nonzero(np.abs(y) > .003)[0]
    return y[max(0, loud[0] - 160):loud[-1] + 160]


def room(y, g):
    """Exponentially decaying noise as an echo (0.1–0.35 s), or a telephone band."""
    if g.random() < .75:
        n = int(RATE * g.uniform(.1, .35))
        tail = g.standard_normal(n) * np.exp(-6.9 * np.arange(n) / n) * g.uniform(.02, .08)
        tail[0] = 1
        return fftconvolve(y, tail).astype(np.float32)
    s = np.fft.rfft(y)
    f = np.arange(len(s)) * RATE / 2 / len(s)
    return np.fft.irfft(s * ((f > 250) & (f < 3600)), len(y)).astype(np.float32)


def clip(r, g, voices, held=False, words=None, repeat=.2, plain=False):
    """One spoken question: (record, samples)."""
    q = draw(r, held=held, repeat=repeat, words=words, lead=.1, reword=0 if held else .2)
    voice, speed, pitch = r.choice(voices), r.randrange(125, 200), r.randrange(25, 76)
    n = len(q.text.split())
    gap = (r.randrange(1, n), r.randrange(250, 900)) if n > 3 and not plain and r.random() < .08 else None
    y = say(q.text, voice, speed, pitch, gap)
    if not plain and r.random() < .2:
        y = room(y, g)
    return dict(text=q.text, answer=q.answer, intent=q.intent, voice=voice, speed=speed, pitch=pitch, gap=gap), y


def bank(name, n, seed, **how):
    """Writes NAME.json (records with first/last frame) and NAME.npy (log10 power mel, float16, all clips in a row)."""
    r, g, records, parts, at, start = random.Random(seed), np.random.default_rng(seed), [], [], 0, time.time()
    for i in range(n):
        record, y = clip(r, g, **how)
        m = mel.log_power(y).half().numpy()
        records.append(dict(record, frames=[at, at + len(m)]))
        parts.append(m)
        at += len(m)
        if i % 500 == 499:
            print(name, i + 1, f"{at / 360000:.2f} h {time.time() - start:.0f} s", flush=True)
    np.save(work() / f"{name}.npy", np.concatenate(parts))
    (work() / f"{name}.json").write_text(json.dumps(records))


def tests(name, n, seed, **how):
    """Writes NAME.json and NAME.npz (int16 waveforms w0, w1 …) for streaming tests."""
    r, g, records, waves = random.Random(seed), np.random.default_rng(seed), [], {}
    for i in range(n):
        record, y = clip(r, g, plain=True, **how)
        records.append(record)
        waves[f"w{i}"] = np.clip(y * 32768, -32768, 32767).astype(np.int16)
    np.savez(work() / f"{name}.npz", **waves)
    (work() / f"{name}.json").write_text(json.dumps(records))


def part(job):
    """One file of the bank: (number, clips)."""
    import torch
    torch.set_num_threads(1)
    bank(f"bank{job[0]}", job[1], 200 + job[0], voices=TRAIN_VOICES)


if __name__ == "__main__":
    n, processes = int(sys.argv[1]) if len(sys.argv) > 1 else 14000, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    tests("test_voices", 240, 101, voices=HELD_VOICES, repeat=0)
    tests("test_phrasings", 240, 102, voices=TRAIN_VOICES, held=True, repeat=0)
    tests("test_both", 160, 103, voices=HELD_VOICES, held=True, repeat=0)
    tests("test_seen", 120, 104, voices=TRAIN_VOICES, repeat=0)
    tests("test_words", 80, 105, voices=HELD_VOICES, repeat=1, words=HELD_WORDS)
    tests("test_repeat", 80, 106, voices=HELD_VOICES, repeat=1, words=TRAIN_WORDS)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(part, [(k, min(3500, n - k * 3500)) for k in range(-(-n // 3500))], chunksize=1)
