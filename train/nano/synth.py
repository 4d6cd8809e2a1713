"""Spoken questions: banks of clips as log-mel, and test clips as waveforms. usage: python -m nano.synth [clips of espeak-ng] [processes] [clips of people] | tests"""
import io, itertools, json, multiprocessing, pathlib, random, shutil, subprocess, sys, time, wave
import numpy as np
from scipy.signal import resample_poly
from . import channel, mel, mixing, outside, sights, speakers
from .questions import HELD_WORDS, TRAIN_WORDS, Question, draw
from .run import work

TRAIN_VOICES = ("en-us en en-gb-x-rp en-gb-scotland en-029 en-us-nyc en-gb-x-gbcwmd en-us+m1 en-us+m3 en-us+m5 en-us+m6 en-us+f1 en-us+f2 en-us+f5 en+m2 en+m4 en+f2 en+f4 "
                "en+m8 en-gb-x-rp+m3 en-gb-x-rp+f2 en-us+f4 en-029+f1 en-us-nyc+m2 en-gb-scotland+f3 en-us+klatt").split()
MORE_VOICES = ("en-us+Alex en+Alicia en-us+Andrea en+Annie en-us+Denis en+Diogo en-us+Gene en-gb-x-rp+Gene2 en-us+Hugo en+Lee en-us+Marco en-us+Mario en+Michael en-us+Mike en-us+RicishayMax en+adam "
               "en-us+anika en+antonio en-us+aunty en-us+belinda en+benjamin en-us+boris en+david en-us+ed en+edward en-us+edward2 en-us+grandma en+grandpa en-us+gustave en-us+iven en+iven2 "
               "en-us+iven3 en-us+john en+klatt2 en-us+klatt3 en-us+klatt4 en+linda en-us+marcelo en-us-nyc+max en-us+michel en-us+miguel en-gb-x-gbcwmd+norbert en-us+pablo en+paul en-us+pedro en-us+quincy "
               "en-us+rob en-gb-scotland+robert en-us+sandro en+shelby en-us+steph en-029+steph2 en-us+travis en-us+victor en+zac en-gb-x-gbcwmd+f2 en-us-nyc+f4 en-029+m3 en-gb-x-gbcwmd+m1 en-gb-scotland+m2 en+m3").split()
HELD_VOICES = "en-us+m7 en-gb-x-gbclan en+f1 en-us+f3 en+m6 en-us-nyc+f5 en-gb-x-rp+m4 en-us+Andy".split()
# MBROLA's voices, made of recorded diphones, with espeak-ng's phones and melody; those of other languages speak English phones mapped onto theirs.
MBROLA_VOICES = ("mb-us1 mb-us3 " * 3 + "mb-af1-en mb-nl2-en mb-fr1-en mb-fr4-en mb-de1-en mb-de2-en mb-de3-en mb-de4-en mb-de5-en mb-de6-en mb-gr2-en mb-hu1-en mb-pl1-en mb-ro1-en mb-sw1-en mb-sw2-en").split()
HELD_MBROLA = "mb-us2 mb-en1".split()
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


def installed_mbrola(voices=MBROLA_VOICES):
    """Those of MBROLA's voices whose data lie where espeak-ng looks for them, if its program is here."""
    return [v for v in voices if shutil.which("mbrola") and pathlib.Path("/usr/share/mbrola", v.split("-")[1]).exists()]


SIZED, OTHER_SPEAKER = .5, .4  # shares of the clips with another throat, and of those that WORLD makes into another speaker


def disguised(y, g, share=OTHER_SPEAKER):
    """The clip by another speaker, perhaps, and through a room, microphone, telephone or codec."""
    from .world import other_speaker
    return channel.channel(other_speaker(y, g) if g.random() < share and len(y) > 4000 else y, g)


def clip(r, g, voices, held=False, words=None, repeat=.2, plain=False, speeds=(125, 200), pitches=(25, 76), seen=False):
    """One spoken question: (record, samples). seen: a question about a picture; its record holds the answer for a
    session without a picture."""
    asked = sights.ask(r, held) if seen else None
    q = Question(asked.text, sights.NO_PICTURE, "sight") if seen else draw(r, held=held, repeat=repeat, words=words, lead=.1, reword=0 if held else .2)
    voice, speed, pitch = r.choice(voices), r.randrange(*speeds), r.randrange(*pitches)
    n = len(q.text.split())
    gap = (r.randrange(1, n), r.randrange(250, 900)) if n > 3 and not plain and r.random() < .08 else None
    size = 1 if plain or r.random() > SIZED else r.triangular(.84, 1.2, 1)
    y = speakers.sized(say(q.text, voice, round(speed / size), pitch, gap), size)
    if not plain:
        y = disguised(y, g, OTHER_SPEAKER / 2)
    record = dict(text=q.text, answer=q.answer, intent=q.intent, voice=voice, speed=speed, pitch=pitch, gap=gap)
    return dict(record, asked=asked) if seen else record, y


def store(name, clips):
    """Writes NAME.json (records with first/last frame) and NAME.npy (log10 power mel, float16, all clips in sequence)."""
    records, parts, at, start = [], [], 0, time.time()
    for i, (record, y) in enumerate(clips):
        m = mel.log_power(y).half().numpy()
        records.append(dict(record, frames=[at, at + len(m)]))
        parts.append(m)
        at += len(m)
        if i % 500 == 499:
            print(name, i + 1, f"{at / 360000:.2f} h {time.time() - start:.0f} s", flush=True)
    np.save(work() / f"{name}.npy", np.concatenate(parts))
    (work() / f"{name}.json").write_text(json.dumps(records))


PEOPLE = speakers.FLITE * 3 + speakers.FESTIVAL * 3 + tuple(speakers.FOREIGN)  # English voices three times as often
MORE_PEOPLE = speakers.RHVOICE * 4 + speakers.PICO * 4 + speakers.RHVOICE_FOREIGN


def by_people(r, n, voices, plain=False, ask=draw, **how):
    """n questions by voices made from people: (record, samples); 100 at a time, because festival takes long to begin."""
    for at in range(0, n, 100):
        asked = [ask(r, **how) for _ in range(min(100, n - at))]
        jobs = [(q.text, r.choice(voices), speakers.manner(r, plain)) for q in asked]
        for q, (_, voice, manner), y in zip(asked, jobs, speakers.say_all(jobs)):
            if y is not None:
                yield dict(text=q.text, answer=q.answer, intent=q.intent, voice=voice, **manner), y


def strange(r, g, n, voices, held=False):
    """n clips outside the domain: a third each random words, questions about other things, other languages (without a text)."""
    for i in range(n):
        q, voice = (outside.words if i % 3 == 0 else outside.question)(r), r.choice(voices)
        if i % 3 == 2:
            text, voice = outside.foreign(r, held)
            q = q._replace(text="")
        y = say(q.text or text, voice, r.randrange(115, 210), r.randrange(18, 84))
        yield dict(text=q.text, answer=q.answer, intent=q.intent, voice=voice), y if held else disguised(y, g)


def strange_by_people(r, n):
    return by_people(r, n, PEOPLE, ask=lambda r: (outside.words if r.random() < .5 else outside.question)(r))


def sounds(g, n):
    """n clips of noise and music of three seconds, to which nothing can be answered."""
    for i in range(n):
        y = mixing.background(g, 7 if i % 2 else i // 2 % 7, 3)
        yield dict(text="", answer=outside.ANSWER, intent="outside", voice="music" if i % 2 else "noise"), y


def keep(name, clips):
    """Writes NAME.json and NAME.npz (int16 waveforms w0, w1 …) for streaming tests."""
    records, waves = [], {}
    for i, (record, y) in enumerate(clips):
        records.append(record)
        waves[f"w{i}"] = np.clip(y * 32768, -32768, 32767).astype(np.int16)
    np.savez(work() / f"{name}.npz", **waves)
    (work() / f"{name}.json").write_text(json.dumps(records))


def tests(name, n, seed, **how):
    r, g = random.Random(seed), np.random.default_rng(seed)
    keep(name, (clip(r, g, plain=True, **how) for _ in range(n)))


def held_out_people():
    """The people of the test, as their synthesisers have them; and the trained ones, to compare."""
    for k, voice in enumerate(speakers.TEST_PEOPLE):
        name = voice.replace("/cmu_us", "").replace("_arctic_hts", "").replace("/", "_")  # flite_slt, flite_awb, festival_slt
        keep(f"test_{name}", by_people(random.Random(120 + k), 200, [voice], plain=True, repeat=0, lead=.1))
        keep(f"test_{name}_phrasings", by_people(random.Random(130 + k), 120, [voice], plain=True, repeat=0, held=True))
    for k, voice in enumerate(installed_mbrola(HELD_MBROLA)):
        tests(f"test_{voice}", 200, 150 + k, voices=[voice], repeat=0)
    keep("test_flite", by_people(random.Random(140), 200, speakers.FLITE, plain=True, repeat=0, lead=.1))
    keep("test_festival", by_people(random.Random(141), 200, speakers.FESTIVAL, plain=True, repeat=0, lead=.1))
    r, g = random.Random(142), np.random.default_rng(142)
    random_words = by_people(r, 25, speakers.TEST_PEOPLE[:2], plain=True, ask=lambda r: Question(" ".join(r.choice(HELD_WORDS) for _ in range(r.randrange(3, 7))), outside.ANSWER, "outside"))
    languages = [clip for i, clip in enumerate(strange(r, g, 75, HELD_VOICES, held=True)) if i % 3 == 2]
    keep("test_outside", [*random_words, *languages, *sounds(g, 50)])


def part(job):
    """Makes one file of the bank: (name, clips, seed, kind, its voices)."""
    import torch
    torch.set_num_threads(1)
    name, n, seed, kind, voices = job
    speakers.check_training(voices)
    assert not set(voices) & set(HELD_VOICES + HELD_MBROLA)
    r, g = random.Random(seed), np.random.default_rng(seed)
    if kind == "people":
        store(name, ((record, disguised(y, g)) for record, y in by_people(r, n, voices, repeat=.04, lead=.1, reword=.2)))
    elif kind == "outside":
        store(name, itertools.chain(strange(r, g, n // 2, voices), ((record, disguised(y, g)) for record, y in strange_by_people(r, n - n // 2))))
    else:
        store(name, (clip(r, g, voices, repeat=.04, speeds=(115, 210), pitches=(18, 84), seen=kind == "seen") for _ in range(n)))


if __name__ == "__main__":
    tests("test_voices", 240, 101, voices=HELD_VOICES, repeat=0)
    tests("test_phrasings", 240, 102, voices=TRAIN_VOICES, held=True, repeat=0)
    tests("test_both", 160, 103, voices=HELD_VOICES, held=True, repeat=0)
    tests("test_seen", 120, 104, voices=TRAIN_VOICES, repeat=0)
    tests("test_words", 80, 105, voices=HELD_VOICES, repeat=1, words=HELD_WORDS)
    tests("test_sights", 240, 107, voices=HELD_VOICES, seen=True)
    tests("test_sight_phrasings", 240, 108, voices=TRAIN_VOICES, held=True, seen=True)
    tests("test_repeat", 80, 106, voices=HELD_VOICES, repeat=1, words=TRAIN_WORDS)
    held_out_people()
    if sys.argv[1:] == ["tests"]:
        raise SystemExit
    n, processes, people = (int(a) for a in (sys.argv[1:] + ["14000", "1", "24000"][len(sys.argv) - 1:]))
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        parts = [(f"bank{k}", min(3500, n - k * 3500), 300 + k, "asked", MIXED_VOICES if k % 2 else TRAIN_VOICES + MORE_VOICES) for k in range(-(-n // 3500))]
        parts += [(f"bank_people{k}", min(2000, people - k * 2000), 400 + k, "people", list(PEOPLE)) for k in range(-(-people // 2000))]
        more = speakers.installed(MORE_PEOPLE)
        if len(more) < len(MORE_PEOPLE):
            print("WITHOUT some voices of RHVoice and Pico, which are not installed (README.md)")
        mbrola = installed_mbrola()
        if len(mbrola) < len(MBROLA_VOICES):
            print("WITHOUT some voices of MBROLA, which are not installed (README.md)")
        parts += [(f"bank_more{k}", 2000, 450 + k, "people", more) for k in range(-(-people * 7 // 24000)) if more]
        parts += [(f"bank_mbrola{k}", 2000, 470 + k, "asked", mbrola) for k in range(-(-n * 4 // 14000)) if mbrola]
        parts += [(f"bank_outside{k}", round((n + people) * outside.SPOKEN_SHARE / 2), 500 + k, "outside", TRAIN_VOICES + MORE_VOICES) for k in range(2)]
        pool.map(part, [("bank_sights", n // 9, 290, "seen", TRAIN_VOICES + MORE_VOICES + MIXED_VOICES)] + parts, chunksize=1)
