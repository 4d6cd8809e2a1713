"""Spoken questions by espeak-ng: a bank of clips as log-mel, and test clips as waveforms. usage: python -m nano.synth [clips] [processes]"""
import io, json, multiprocessing, random, subprocess, sys, time, wave
import numpy as np
from scipy.signal import fftconvolve, resample_poly
from . import mel, sights
from .questions import HELD_WORDS, TRAIN_WORDS, Question, draw
from .run import work

TRAIN_VOICES = ("en-us en en-gb-x-rp en-gb-scotland en-029 en-us-nyc en-gb-x-gbcwmd en-us+m1 en-us+m3 en-us+m5 en-us+m6 en-us+f1 en-us+f2 en-us+f5 en+m2 en+m4 en+f2 en+f4 "
                "en+m8 en-gb-x-rp+m3 en-gb-x-rp+f2 en-us+f4 en-029+f1 en-us-nyc+m2 en-gb-scotland+f3 en-us+klatt").split()
MORE_VOICES = ("en-us+Alex en+Alicia en-us+Andrea en+Annie en-us+Denis en+Diogo en-us+Gene en-gb-x-rp+Gene2 en-us+Hugo en+Lee en-us+Marco en-us+Mario en+Michael en-us+Mike en-us+RicishayMax en+adam "
               "en-us+anika en+antonio en-us+aunty en-us+belinda en+benjamin en-us+boris en+david en-us+ed en+edward en-us+edward2 en-us+grandma en+grandpa en-us+gustave en-us+iven en+iven2 "
               "en-us+iven3 en-us+john en+klatt2 en-us+klatt3 en-us+klatt4 en+linda en-us+marcelo en-us-nyc+max en-us+michel en-us+miguel en-gb-x-gbcwmd+norbert en-us+pablo en+paul en-us+pedro en-us+quincy "
               "en-us+rob en-gb-scotland+robert en-us+sandro en+shelby en-us+steph en-029+steph2 en-us+travis en-us+victor en+zac en-gb-x-gbcwmd+f2 en-us-nyc+f4 en-029+m3 en-gb-x-gbcwmd+m1 en-gb-scotland+m2 en+m3").split()
HELD_VOICES = "en-us+m7 en-gb-x-gbclan en+f1 en-us+f3 en+m6 en-us-nyc+f5 en-gb-x-rp+m4 en-us+Andy".split()
VARIANTS = sorted({v.split("+")[1] for v in TRAIN_VOICES + MORE_VOICES if "+" in v} - {v.split("+")[1] for v in HELD_VOICES if "+" in v})
MIXED_VOICES = [f"{accent}+{variant}" for accent in TRAIN_VOICES if "+" not in accent for variant in VARIANTS]
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


def clip(r, g, voices, held=False, words=None, repeat=.2, plain=False, speeds=(125, 200), pitches=(25, 76), seen=False):
    """One spoken question: (record, samples). seen: a question about a picture; its record holds the answer for a
    session without a picture."""
    asked = sights.ask(r, held) if seen else None
    q = Question(asked.text, sights.NO_PICTURE, "sight") if seen else draw(r, held=held, repeat=repeat, words=words, lead=.1, reword=0 if held else .2)
    voice, speed, pitch = r.choice(voices), r.randrange(*speeds), r.randrange(*pitches)
    n = len(q.text.split())
    gap = (r.randrange(1, n), r.randrange(250, 900)) if n > 3 and not plain and r.random() < .08 else None
    y = say(q.text, voice, speed, pitch, gap)
    if not plain and r.random() < .2:
        y = room(y, g)
    record = dict(text=q.text, answer=q.answer, intent=q.intent, voice=voice, speed=speed, pitch=pitch, gap=gap)
    return dict(record, asked=asked) if seen else record, y


def bank(name, n, seed, **how):
    """Writes NAME.json (records with first/last frame) and NAME.npy (log10 power mel, float16, all clips in
    sequence)."""
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
    """Makes one file of the bank: (name, clips, seed, voices, whether about pictures)."""
    import torch
    torch.set_num_threads(1)
    name, n, seed, voices, seen = job
    bank(name, n, seed, voices=voices, repeat=.04, speeds=(115, 210), pitches=(18, 84), seen=seen)


if __name__ == "__main__":
    n, processes = int(sys.argv[1]) if len(sys.argv) > 1 else 14000, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    tests("test_voices", 240, 101, voices=HELD_VOICES, repeat=0)
    tests("test_phrasings", 240, 102, voices=TRAIN_VOICES, held=True, repeat=0)
    tests("test_both", 160, 103, voices=HELD_VOICES, held=True, repeat=0)
    tests("test_seen", 120, 104, voices=TRAIN_VOICES, repeat=0)
    tests("test_words", 80, 105, voices=HELD_VOICES, repeat=1, words=HELD_WORDS)
    tests("test_sights", 240, 107, voices=HELD_VOICES, seen=True)
    tests("test_sight_phrasings", 240, 108, voices=TRAIN_VOICES, held=True, seen=True)
    tests("test_repeat", 80, 106, voices=HELD_VOICES, repeat=1, words=TRAIN_WORDS)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        parts = [(f"bank{k}", min(3500, n - k * 3500), 300 + k, MIXED_VOICES if k % 2 else TRAIN_VOICES + MORE_VOICES, False) for k in range(-(-n // 3500))]
        pool.map(part, parts + [("bank_sights", n // 9, 290, TRAIN_VOICES + MORE_VOICES + MIXED_VOICES, True)], chunksize=1)
