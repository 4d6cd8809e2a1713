"""Voices made from recordings of people: flite's, festival's English ones, and festival's of other languages, which speak
English phones mapped onto theirs (`data/phones.txt`); RHVoice's and Pico's, where they are installed."""
import math, pathlib, random, re, shutil, subprocess, tempfile, wave
import numpy as np
from scipy.signal import resample_poly
from . import rhvoice
from .grammar import DATA

FLITE = ("flite/kal", "flite/kal16", "flite/rms")
FESTIVAL = ("festival/kal_diphone", "festival/ked_diphone")
FOREIGN = {"festival/pc_diphone": "italian", "festival/lp_diphone": "italian", "festival/czech_ph": "czech", "festival/czech_dita": "czech", "festival/czech_krb": "czech",
           "festival/czech_machac": "czech", "festival/suo_fi_lj_diphone": "finnish", "festival/hy_fi_mv_diphone": "finnish"}
RHVOICE = ("rhvoice/Bdl", "rhvoice/Clb")
RHVOICE_FOREIGN = ("rhvoice/Elena", "rhvoice/Anna", "rhvoice/Irina", "rhvoice/Aleksandr", "rhvoice/Natalia")  # read English in the phones of Russian or Ukrainian
PICO = ("pico/en-US", "pico/en-GB")
TRAIN_PEOPLE = FLITE + FESTIVAL + tuple(FOREIGN) + RHVOICE + RHVOICE_FOREIGN + PICO
TEST_PEOPLE = ("flite/slt", "flite/awb", "festival/cmu_us_slt_arctic_hts")  # the people of the test: never trained
RATE = 16000


def check_training(voices):
    """Fails if a list for training has a person of the test."""
    held = [v for v in voices if "slt" in v.lower() or "awb" in v.lower()]
    assert not held, f"people of the test in a training list: {held}"


check_training(TRAIN_PEOPLE)


def installed(voices):
    """Those of the voices whose synthesiser is here: RHVoice and Pico are not in every distribution."""
    here = dict(rhvoice=rhvoice.engine, pico=lambda: shutil.which("pico2wave"))
    return [v for v in voices if here.get(v.split("/")[0], lambda: True)()]


def read_phones():
    """{language: {English phone: [phones]}} of data/phones.txt."""
    tables = {}
    for line in (DATA / "phones.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, pairs = line.split(":", 1)
            tables[name] = {a: [p for p in b.split("+") if p] for a, b in (pair.split("=", 1) for pair in pairs.split())}
    return tables


PHONES = read_phones()


def manner(r, plain=False):
    """How a sentence is spoken: size (formants), tempo, pitch and its range as factors, and a seed for the local speed."""
    if plain:
        return dict(size=1, tempo=1, pitch=1, range=1, local=0)
    return dict(size=r.triangular(.84, 1.2, 1), tempo=r.triangular(.8, 1.3, 1.02), pitch=math.exp(r.uniform(-.4, .5)), range=r.choice([.3, .7, 1, 1.4, 2]), local=r.randrange(1, 10 ** 9))


def read_wave(path):
    """float32 samples at 16 kHz, silence trimmed to 10 ms."""
    with wave.open(str(path)) as w:
        return trimmed(np.frombuffer(w.readframes(w.getnframes()), "<i2"), w.getframerate())


def trimmed(samples, rate):
    """The same of int16 samples at any rate."""
    y = samples.astype(np.float32) / 32768
    if rate != RATE:
        common = math.gcd(rate, RATE)
        y = resample_poly(y, RATE // common, rate // common).astype(np.float32)
    loud = np.nonzero(np.abs(y) > .01 * np.abs(y).max())[0]
    return y[max(0, loud[0] - 160):loud[-1] + 160]


def sized(y, size):
    """The sound as if from a throat smaller by `size`: faster by that factor, with formants and pitch higher."""
    k = round(size * 100)
    return y if k == 100 else resample_poly(y, 100 // math.gcd(100, k), k // math.gcd(100, k)).astype(np.float32)


def by_flite(text, voice, how, path):
    mean = dict(kal=105, kal16=105, rms=95, slt=170, awb=120)[voice] * how["pitch"] / how["size"]
    setting = ["--setf", f"duration_stretch={how['size'] / how['tempo']:.3f}"]
    if how["pitch"] != 1 or how["range"] != 1:
        setting += ["--setf", f"int_f0_target_mean={mean:.1f}", "--setf", f"int_f0_target_stddev={mean * .11 * how['range']:.1f}"]
    subprocess.run(["flite", "-voice", voice, *setting, "-t", text, "-o", str(path)], check=True, capture_output=True)


def by_rhvoice(text, voice, how):
    said = rhvoice.engine().say(text, voice, how["tempo"] / how["size"], min(2, how["pitch"] / how["size"]))
    return said and sized(trimmed(*said), how["size"])


def by_pico(text, voice, how, path):
    tempo, pitch = round(100 * how["tempo"] / how["size"]), round(100 * min(2, max(.5, how["pitch"] / how["size"])))
    subprocess.run(["pico2wave", "-l", voice, "-w", str(path), f'<speed level="{tempo}"><pitch level="{pitch}">{text}</pitch></speed>'], check=True, capture_output=True)


def festival(script, folder):
    (folder / "script.scm").write_text(script)
    return subprocess.run(["festival", "-b", str(folder / "script.scm")], capture_output=True, text=True, errors="replace").stdout


LIST = """(voice_kal_diphone)
(define (first_f0 s) (let ((x (item.relation s 'Target))) (if (and x (item.daughters x)) (item.feat (car (item.daughters x)) 'f0) 0)))
(define (list_phones text) (let ((u (utt.synth (eval (list 'Utterance 'Text text)))))
  (mapcar (lambda (s) (format t "%s %f %f " (item.name s) (item.feat s 'segment_duration) (first_f0 s))) (utt.relation.items u 'Segment)) (format t "\\n")))
"""
RENDER = """(define (render phones path) (unwind-protect (utt.save.wave (utt.synth (eval (list 'Utterance 'Segments phones))) path 'riff) nil))
"""


def segments(texts, folder):
    """[(phone, seconds, Hz or 0)] of each text, as festival's kal would say it."""
    lines = festival(LIST + "".join(f'(list_phones "{t}")\n' for t in texts), folder).splitlines()
    found = [re.findall(r"(\S+) ([\d.]+) ([\d.]+) ", line) for line in lines if line.startswith("pau ")]
    assert len(found) == len(texts), (len(found), len(texts))
    return [[(p, float(s), float(f)) for p, s, f in each] for each in found]


def spoken_as(phones, voice, how):
    """The phones in the voice's own set with times and pitch, as a Scheme list. Speed changes also within the sentence."""
    table, r, out, pace = PHONES.get(FOREIGN.get(voice)), random.Random(how["local"]), [], 1
    base = 100 * {"czech_dita": 1.8, "lp_diphone": 1.7, "suo_fi_lj_diphone": 1.7, "czech_krb": 1.8}.get(voice.split("/")[1], 1.05)
    for i, (phone, seconds, hz) in enumerate(phones):
        if how["local"] and r.random() < .2:
            pace = math.exp(r.uniform(-.25, .25))
        mapped = table[phone] if table else [phone]
        for k, p in enumerate(mapped):
            length = max(.02, seconds * pace / len(mapped) * how["size"] / how["tempo"])
            target = f" ({length / 2:.4f} {base * how['pitch'] / how['size'] * (hz / 105) ** how['range']:.1f})" if hz and k == 0 else ""
            out.append(f"({p} {length:.4f}{target})")
    return "(" + " ".join(out) + ")"


def say_all(jobs):
    """jobs: [(text, voice, manner)] -> float32 samples at 16 kHz, None where a voice lacks a pair of phones."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        path = lambda i: folder / f"{i}.wav"
        ours = [i for i, (_, v, _) in enumerate(jobs) if v in FESTIVAL or v in FOREIGN]
        phones = dict(zip(ours, segments([jobs[i][0] for i in ours], folder))) if ours else {}
        script, last, said = [RENDER], None, {}
        for i in sorted(range(len(jobs)), key=lambda i: jobs[i][1]):
            text, voice, how = jobs[i]
            kind, name = voice.split("/")
            if kind == "rhvoice":
                said[i] = by_rhvoice(text, name, how)
            elif kind != "festival":
                dict(flite=by_flite, pico=by_pico)[kind](text, name, how, path(i))
            if kind != "festival":
                continue
            if voice != last:
                script.append(f"(voice_{name})")
                last = voice
            script.append(f"(render '{spoken_as(phones[i], voice, how)} \"{path(i)}\")" if i in phones else f'(utt.save.wave (utt.synth (Utterance Text "{text}")) "{path(i)}" \'riff)')
        if last:
            festival("\n".join(script), folder)
        written = lambda i: path(i).exists() and path(i).stat().st_size > 2000
        return [said[i] if i in said else sized(read_wave(path(i)), how["size"]) if written(i) else None for i, (_, _, how) in enumerate(jobs)]
