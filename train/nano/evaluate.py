"""Measures on held-out sets what the model can do, and prints a table. usage: python -m nano.evaluate CHECKPOINT [text|speech|sight|all] [n]

CHECKPOINT is a training state (.pt) or an exported folder. Replies are sampled as on the server. An answer is correct if its whole text matches."""
import json, math, pathlib, random, sys
import numpy as np
import torch
from . import layouts, mixing, pictures, sights, stream
from .model import Nano
from .questions import copy_drill, draw, typed
from .run import work
from .scenes import first_unit_after
from .tokenizer import Text
from .tower import Tower


def load(path):
    """(Nano, Text) from a .pt training state (with the work folder's tower) or an exported checkpoint folder. The
    model's `tower` is None if it cannot see."""
    path, nano, tower = pathlib.Path(path), Nano(), None
    if path.is_dir():
        from safetensors.torch import load_file
        state, text = {k: v.float() for k, v in load_file(path / "model.safetensors").items()}, Text(path)
        sight = {k: v for k, v in state.items() if k.startswith(("vpm.", "resampler."))}
    else:
        state, text = torch.load(path)["model"], Text(work() / "tokenizer")
        state = {k.removeprefix("nano."): v for k, v in state.items()}
        sight = torch.load(work() / "tower.pt")["model"] if (work() / "tower.pt").exists() else {}
    if sight:
        tower = Tower().eval()
        tower.load_state_dict(sight)
    missing, _ = nano.load_state_dict(state, strict=False)
    if missing:
        print("not in the file, random:", len(missing), "tensors")
    nano.tower = tower
    return nano.eval(), text


def wilson(right, n):
    """The ends of the 95 % interval of a share."""
    z, p = 1.96, right / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(max(0, p * (1 - p)) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def row(name, right, n, note=""):
    low, high = wilson(right, n) if n else (0, 1)
    print(f"| {name} | {right / max(n, 1):.1%} ({100 * max(0, low):.0f} to {100 * high:.0f}) | {n} | {note} |", flush=True)


def ask(nano, text, questions, seed, system=None):
    """The reply to the last of several rounds, sampled as in a chat session."""
    r = random.Random(seed)
    kind = r.choice([0, 0, 1, 2])
    ids, weights = layouts.chat(text, r, questions, kind=kind, system=r.choice(["", layouts.SYSTEM[0]]) if system is None else system)
    prompt = ids[:len(ids) - next(k for k, w in enumerate(reversed(weights)) if not w)]
    return text.decode(stream.reply(nano, text, prompt, seed))


def chats(nano, text, n, show=6):
    """Typed questions: seen and unseen phrasings, copying, several rounds."""
    def measure(name, make, note="", rounds=1):
        r, right, wrong = random.Random(41), 0, []
        for i in range(n):
            questions = [make(r) if k == rounds - 1 else typed(r, draw(r, repeat=0)) for k in range(rounds)]
            got = ask(nano, text, questions, i)
            right += got == questions[-1].answer
            if got != questions[-1].answer:
                wrong.append((questions[-1].text, questions[-1].answer, got))
        row(name, right, n, note)
        for w in wrong[:show]:
            print("   ", w)

    measure("chat, seen phrasings", lambda r: typed(r, draw(r, repeat=0)))
    measure("chat, unseen phrasings", lambda r: typed(r, draw(r, held=True, repeat=0)))
    measure("chat, third round of a conversation", lambda r: typed(r, draw(r, repeat=0)), rounds=3)
    measure("reply with exactly, list words, seen frames", copy_drill_words)
    measure("reply with exactly, list words, unseen frames", lambda r: copy_drill(r, held=True))
    measure("reply with exactly, held-out words, seen frames", lambda r: copy_drill(r, held_words=True))
    measure("repeat after me (typed)", lambda r: draw(r, repeat=1))


def copy_drill_words(r):
    """A training frame with words of the training list only."""
    from .questions import TRAIN_WORDS, Question
    from .slots import EXACT
    x = " ".join(r.choice(TRAIN_WORDS) for _ in range(r.choice([1, 1, 2, 3])))
    return Question(r.choice(EXACT[0]).format(x=x), x, "exact")


def with_noise(y, snr, g, kind=1):
    """Adds noise to y, snr dB below its speech (the loud part)."""
    loud = y[np.abs(y) > .01]
    level = np.sqrt((loud ** 2).mean()) * 10 ** (-snr / 20)
    n = mixing.background(g, kind, len(y) // 16000 + 2)[:len(y)]
    return y + n / n.std() * level


def session(nano, text, waves, seed, lead, snr=None, settings=None, gap=(.5, 2.0), voice=None, seen=()):
    """Plays the questions in turn, each after the reply to the one before. Returns (reply, units late) per question: negative
    if it came too early, None if never. seen: the frame's rows for each second before the first question, then for each question with its answer."""
    r, g = random.Random(seed), np.random.default_rng(seed)
    duplex = stream.Duplex(nano, text, settings, voice=voice, seed=seed)
    sound = [np.zeros(int(lead * 16000), np.float32)]
    results, unit = [], 0
    for k, wave in enumerate(waves):
        y = wave.astype(np.float32) / 32768 * 10 ** r.uniform(-.6, .2)
        sound.append(y)
        end = sum(map(len, sound)) / 160
        due, begins = first_unit_after(end), (end - len(y) / 160) // 100
        noisy = np.concatenate(sound + [np.zeros(16000 * 14, np.float32)])
        if snr is not None:
            noisy = with_noise(noisy, snr, np.random.default_rng(seed), g.integers(0, 4))
        said, start = "", None
        while unit < due + 12:
            out = duplex.unit(noisy[unit * 16000:unit * 16000 + 16000], seen[k + (unit >= begins)] if seen else None)
            unit += 1
            if out["text"] and start is None:
                start = unit - 1 - due
            said += out["text"]
            if (out["end"] and start is not None and start >= 0) or (start is None and unit > due + 5):
                break
        results.append((said, start))
        total = sum(map(len, sound))
        sound.append(np.zeros(max(0, unit * 16000 - total) + int(16000 * r.uniform(*gap)), np.float32))
    return results


def spoken(nano, text, n, show=6):
    """Spoken questions through the streaming path."""
    def measure(name, source, lead, turns=1, snr=None, seed=0, note="", count=None):
        records, waves = json.loads((work() / f"{source}.json").read_text()), np.load(work() / f"{source}.npz")
        r, right, timely, total, wrong = random.Random(seed), 0, 0, 0, []
        for i in range((count or n) // turns):
            ids = [(i * turns + k) % len(records) for k in range(turns)]
            results = session(nano, text, [waves[f"w{k}"] for k in ids], seed * 1000 + i, r.uniform(*lead), snr)
            for k, (said, start) in zip(ids, results):
                total += 1
                right += said == records[k]["answer"]
                timely += start is not None and 0 <= start <= 1
                if said != records[k]["answer"]:
                    wrong.append((records[k]["text"], records[k]["answer"], said, start))
        row(name, right, total, f"starts in time {timely / total:.1%}{note}")
        for w in wrong[:show]:
            print("   ", w)

    measure("spoken, seen voices and phrasings", "test_seen", (0, 3), count=min(n, 120))
    measure("spoken, unseen voices", "test_voices", (0, 3))
    measure("spoken, unseen voices, 12 dB noise", "test_voices", (0, 3), snr=12, seed=2)
    measure("spoken, unseen voices, start at 0-20 s", "test_voices", (0, 20), seed=3, count=n // 2)
    measure("spoken, unseen voices, three turns", "test_voices", (0, 3), turns=3, seed=4)
    measure("spoken, unseen phrasings", "test_phrasings", (0, 3), seed=5)
    measure("spoken, unseen voices and phrasings", "test_both", (0, 3), seed=6, count=min(n, 160))
    measure("spoken, repeat after me, list words", "test_repeat", (0, 3), seed=7, count=min(n, 80))
    measure("spoken, repeat after me, held-out words", "test_words", (0, 3), seed=8, count=min(n, 80))


def drawn(nano, sight, seed):
    """The rows of a new picture that training never drew."""
    g = np.random.default_rng(7_000_000 + seed)
    return nano.tower.look(pictures.draw(g, sight, *g.choice(pictures.FORMS)))


def sighted(nano, text, n, show=4):
    """Questions about new pictures: typed in chat, and spoken in full duplex with a frame a second."""
    def typed_about(name, kinds, held=False, pairs=False):
        r, right, wrong = random.Random(43), 0, []
        for i in range(n):
            sight = sights.random_sight(r, pairs)
            while sight.number == 0 or kinds == ["place"] and sight.number != 1:
                sight = sights.random_sight(r, pairs)
            question = layouts.about_picture(r, sight, held, r.choice(kinds))
            ids, weights = layouts.chat(text, r, [question], kind=r.choice([0, 0, 1, 2]), system=r.choice(["", layouts.SYSTEM[0]]), shown={0})
            prompt = ids[:len(ids) - next(k for k, w in enumerate(reversed(weights)) if not w)]
            got = text.decode(stream.reply(nano, text, prompt, i, seen=drawn(nano, sight, i)))
            right += got == question.answer
            if got != question.answer:
                wrong.append((question.text, tuple(sight), got))
        row(name, right, n)
        for w in wrong[:show]:
            print("   ", w)

    def spoken_about(name, source, kinds, pairs=False, seed=0):
        records, waves = json.loads((work() / f"{source}.json").read_text()), np.load(work() / f"{source}.npz")
        chosen = [i for i, q in enumerate(records) if q["asked"][1] in kinds][:n]
        r, right, timely, wrong = random.Random(seed), 0, 0, []
        for i in chosen:
            asked = sights.Asked(*records[i]["asked"])
            fitting = next((s for s in (sights.random_sight(r, pairs, asked) for _ in range(200)) if s.number), None) if not pairs or asked.shape is None else next(
                (s for s in (sights.random_sight(r, True) for _ in range(2000)) if s.number and sights.fits(asked, s)), None)
            before = sights.random_sight(r)
            (said, start), = session(nano, text, [waves[f"w{i}"]], seed * 1000 + i, r.uniform(0, 3), seen=[drawn(nano, before, 2 * i), drawn(nano, fitting, 2 * i + 1)])
            right += said == sights.answer(asked, fitting)
            timely += start is not None and 0 <= start <= 1
            if said != sights.answer(asked, fitting):
                wrong.append((asked.text, tuple(fitting), said, start))
        row(name, right, len(chosen), f"starts in time {timely / len(chosen):.1%}")
        for w in wrong[:show]:
            print("   ", w)

    for kind in ("colour", "shape", "number", "place"):
        typed_about(f"a picture in chat, {kind}", [kind])
    typed_about("a picture in chat, colour and shape, unseen phrasings", ["colour", "shape"], held=True)
    typed_about("a picture in chat, colour and shape, pairs of them never trained", ["colour", "shape"], pairs=True)
    for kind in ("colour", "shape", "number", "place"):
        spoken_about(f"video, unseen voices, {kind}", "test_sights", [kind])
    spoken_about("video, unseen phrasings, colour and shape", "test_sight_phrasings", ["colour", "shape"], seed=1)
    spoken_about("video, unseen voices, colour and shape, pairs of them never trained", "test_sights", ["colour", "shape"], pairs=True, seed=2)
    records, waves = json.loads((work() / "test_voices.json").read_text()), np.load(work() / "test_voices.npz")
    r, right = random.Random(5), 0
    for i in range(n):
        shown = drawn(nano, sights.random_sight(r), i)
        (said, _), = session(nano, text, [waves[f"w{i}"]], 5000 + i, r.uniform(0, 3), seen=[shown, shown])
        right += said == records[i]["answer"]
    row("video, unseen voices, questions about something else", right, n)


def unasked(nano, text, minutes=10):
    """How often the model speaks during silence, noise and tones (sessions of a minute)."""
    spoke = 0
    for k in range(minutes):
        g = np.random.default_rng(900 + k)
        y = np.zeros(61 * 16000, np.float32) if k == 0 else mixing.background(g, [0, 1, 2, 3, 4, 5, 6, 7, 7][(k - 1) % 9], 61) * 10 ** g.uniform(-1.2, .3)
        duplex = stream.Duplex(nano, text, seed=k)
        turns = sum(duplex.unit(y[u * 16000:u * 16000 + 16000])["end"] for u in range(60))
        spoke += turns
        if turns:
            print("    kind", k, "spoke", turns)
    print(f"| speaks unasked in {minutes} min of silence, noise, tones | {spoke} times | {minutes} | |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, n = sys.argv[2] if len(sys.argv) > 2 else "all", int(sys.argv[3]) if len(sys.argv) > 3 else 240
    nano, text = load(sys.argv[1])
    print("| what | right | n | note |\n|---|---|---|---|")
    if what in ("text", "all"):
        chats(nano, text, n)
    if what in ("sight", "all") and nano.tower:
        sighted(nano, text, n)
    if what in ("speech", "all"):
        spoken(nano, text, n)
        unasked(nano, text)
