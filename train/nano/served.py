"""Asks a running server held-out questions: spoken in full duplex, with and without video, and typed about pictures. Also checks what its voice says. usage: python -m nano.served http://HOST:PORT [questions] [voice | people | chat]

"voice": only questions in unseen voices, to measure how well its answers are understood; "people": the held-out people, the trained ones, and sound
outside the domain; "chat": typed questions, functions, names, pictures of something else. Each share has its 95 % interval (Wilson). Needs `websockets` and pocketsphinx. The server is best started with --set worker.max_sessions=1 and a seed."""
import json, random, sys, types
import numpy as np
import torch
from scipy.signal import resample_poly
from . import layouts, outside, pictures, recogniser, sights, synth, tools
from .evaluate import row, with_noise
from .questions import OWN_WORDS, STRANGERS, draw, plainly, typed
from .run import work
from .scenes import first_unit_after

sys.path.append(str(__import__("pathlib").Path(__file__).parents[2] / "tests/e2e"))
from realtime import Client, floats, http, jpeg  # noqa: E402  the client of the end-to-end tests


def rough_seams(pieces, near=480):
    """(number of seams inside a reply that bend more sharply than the signal within 20 ms around them, number of seams
    with sound). pieces: float32 at 24 kHz."""
    y, at, found = np.concatenate(pieces), 0, []
    bend = np.abs(np.diff(y, 2, prepend=0, append=0))
    for piece in pieces[:-1]:
        at += len(piece)
        around = bend[max(0, at - near):at + near]
        if np.abs(y[max(0, at - near):at + near]).max() > .01:
            found.append(bend[at - 1:at + 1].max() >= around.max())
    return sum(found), len(found)


def converse(server, wave, lead, snr=None, seed=0, speaks=True, shown=None):
    """One session with one question: (reply, units late or None, its sound in pieces at 24 kHz). shown: a picture sent
    with every second."""
    r, g = random.Random(seed), np.random.default_rng(seed)
    y = np.concatenate([np.zeros(int(lead * 16000), np.float32), wave.astype(np.float32) / 32768 * 10 ** r.uniform(-.6, .2)])
    due = int(first_unit_after(len(y) / 160))
    sound = np.concatenate([y, np.zeros(16000 * 16, np.float32)])
    if snr is not None:
        sound = with_noise(sound, snr, g, int(g.integers(0, 4)))
    said, start, heard = "", None, []
    with_each = dict(video_frames=[shown]) if shown else {}
    with Client(server, mode="video" if shown else "audio") as client:
        client.init(config={} if speaks else {"generate_audio": False})
        for unit in range(due + 12):
            deltas = client.step(sound[unit * 16000:unit * 16000 + 16000], **with_each)
            text = "".join(d.get("text", "") for d in deltas)
            heard += [floats(d["audio"]) for d in deltas if d.get("audio")]
            if text and start is None:
                start = unit - due
            said += text
            if (any(d.get("end_of_turn") for d in deltas) and start is not None) or (start is None and unit > due + 5):
                break
        client.send({"type": "session.close", "reason": "user_stop"})
    return said, start, heard


def file_of(sight, seed):
    """A new picture as a camera might send it, larger than the model's input size."""
    g = np.random.default_rng(8_000_000 + seed)
    width, height = ((320, 240), (640, 480), (480, 480), (640, 360))[int(g.integers(4))]
    return jpeg(pictures.draw(g, sight, width, height))


def sighted(server, n):
    """Colours and shapes: spoken in unseen voices with video, and typed with a picture."""
    records, waves, r = json.loads((work() / "test_sights.json").read_text()), np.load(work() / "test_sights.npz"), random.Random(6)
    right = timely = 0
    chosen = [i for i, q in enumerate(records) if q["asked"][1] in ("colour", "shape")][:n]
    for i in chosen:
        asked = sights.Asked(*records[i]["asked"])
        sight = next(s for s in iter(lambda: sights.random_sight(r, asked=asked), None) if s.number)
        said, start, _ = converse(server, waves[f"w{i}"], r.uniform(0, 3), seed=i, speaks=False, shown=file_of(sight, i))
        right += said == sights.answer(asked, sight)
        timely += start is not None and 0 <= start <= 1
    row("video, unseen voices, colour and shape", right, len(chosen), f"starts in time {timely / len(chosen):.0%}")
    right = 0
    for i in range(n):
        sight = next(s for s in iter(lambda: sights.random_sight(r), None) if s.number)
        question = layouts.about_picture(r, sight, True, r.choice(["colour", "shape"]))
        with Client(server, mode="chat") as client:
            client.init()
            content = [{"type": "image", "data": file_of(sight, 1000 + i)}, {"type": "text", "text": question.text}]
            client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": content}]}})
            right += client.until_done()["text"] == question.answer
    row("a picture in chat, colour and shape, unseen phrasings", right, n)


PEOPLE = ["flite_slt", "flite_awb", "festival_slt", "flite", "festival", "flite_slt_phrasings", "flite_awb_phrasings", "festival_slt_phrasings", *synth.HELD_MBROLA]


def people(server, n, show=6):
    """Questions by the held-out people (slt, awb; MBROLA's us2 and en1, where they were made) and by trained ones, then sound outside the domain."""
    refused = asked = 0
    for name in (p for p in PEOPLE if (work() / f"test_{p}.json").exists()):
        records, waves, r = json.loads((work() / f"test_{name}.json").read_text()), np.load(work() / f"test_{name}.npz"), random.Random(4)
        right = timely = own = wrong = 0
        count = min(n, len(records))
        for i in range(count):
            said, start, _ = converse(server, waves[f"w{i}"], r.uniform(0, 3), seed=i, speaks=False)
            right, own = right + (said == records[i]["answer"]), own + (said == outside.ANSWER)
            timely += start is not None and 0 <= start <= 1
            if said != records[i]["answer"] and wrong < show:
                wrong += 1
                print("   ", (records[i]["text"], records[i]["answer"], said, start), flush=True)
        row(f"spoken, {name}", right, count, f"starts in time {timely / count:.0%}, not understood {own / count:.0%}")
        refused, asked = refused + own, asked + count
    row("in the domain, wrongly not understood", refused, asked)
    records, waves, r = json.loads((work() / "test_outside.json").read_text()), np.load(work() / "test_outside.npz"), random.Random(5)
    claims = {}
    for i, record in enumerate(records):
        said, _, _ = converse(server, waves[f"w{i}"], r.uniform(0, 3), seed=i, speaks=False)
        kind = record["voice"] if record["voice"] in ("noise", "music") else "words" if record["text"] else "languages"
        claims.setdefault(kind, []).append(said not in ("", outside.ANSWER))
    for kind, found in claims.items():
        row(f"outside the domain, {kind}: claims to have understood", sum(found), len(found))
    row("outside the domain: claims to have understood", sum(map(sum, claims.values())), len(records))


def complete(server, messages, **more):
    """The message that answers, over HTTP."""
    status, reply = http(server, "/v1/chat/completions", "POST", dict(model="nano", messages=messages, max_tokens=80, **more))
    assert status == 200, reply
    return reply["choices"][0]["message"]


def chat(server, n):
    """Typed: in and outside the domain, functions, the name in the system prompt, pictures of something else."""
    say = lambda text: (complete(server, [dict(role="user", content=text)])["content"] or "").strip()
    for held in (False, True):
        r, right, refused = random.Random(61), 0, 0
        for _ in range(n):
            q = typed(r, draw(r, held=held, repeat=0))
            got = say(q.text)
            right, refused = right + (got == q.answer), refused + (got == outside.ANSWER)
        row(f"typed, {'unseen' if held else 'seen'} phrasings", right, n, f"not understood {refused / n:.0%}")
    for name, asked in (("plainly, about every value", plainly()), ("in people's own words", OWN_WORDS), ("by strangers", STRANGERS)):
        row(f"typed, {name}", sum(say(q.text) == q.answer for q in asked), len(asked))
    r = random.Random(62)
    row("typed, outside the domain: not understood", sum(say(outside.typed(r, held=q).text) == outside.ANSWER for q in outside.HELD_QUESTIONS), len(outside.HELD_QUESTIONS))
    row("typed by strangers, outside the domain: not understood", sum(say(q) == outside.ANSWER for q in outside.STRANGERS), len(outside.STRANGERS))
    called_right = called = words_right = words = calls_unfit = unfit = 0
    r = random.Random(63)
    while called < 60:
        offered, question, call, returned, answer = tools.scene(r, held=True)
        asked = [dict(role="user", content=question.text)]
        reply = complete(server, asked, tools=offered)
        calls = [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in reply.get("tool_calls") or []]
        if not call:
            unfit, calls_unfit = unfit + 1, calls_unfit + bool(calls)
            continue
        called, called_right = called + 1, called_right + (calls == [call])
        if calls == [call]:
            told = complete(server, asked + [dict(role="assistant", content=None, tool_calls=reply["tool_calls"]),
                                             dict(role="tool", tool_call_id=reply["tool_calls"][0]["id"], content=returned)], tools=offered)
            words, words_right = words + 1, words_right + ((told["content"] or "").strip() == answer)
    row("functions: the right call, name and arguments", called_right, called)
    row("functions: the result in words", words_right, words)
    row("functions: a call although none fits", calls_unfit, unfit)
    r = random.Random(64)
    none = [complete(server, [dict(role="user", content=tools.scene(r, held=True)[1].text)]) for _ in range(60)]
    row("functions: a call although none is offered", sum(bool(m.get("tool_calls")) or "<tool_call>" in (m["content"] or "") for m in none), len(none))
    r, right = random.Random(65), 0
    for _ in range(60):
        system, question = tools.name_asked(r, held=True)
        right += (complete(server, [dict(role="system", content=system), dict(role="user", content=question.text)])["content"] or "").strip() == question.answer
    row("the name in the system prompt", right, 60)
    r, right = random.Random(66), 0
    for i in range(60):
        content = [{"type": "image", "data": file_of(sights.Sight("red", "circle", sights.OTHER, None, None), 5000 + i)}, {"type": "text", "text": sights.ask(r, True).text}]
        with Client(server, mode="chat") as client:
            client.init()
            client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": content}]}})
            right += client.until_done()["text"] == outside.ANSWER
    row("a picture of something else in chat: not understood", right, 60)


def main(url, n, what=""):
    torch.set_num_threads(1)
    server = types.SimpleNamespace(http=url, realtime=url.replace("http", "ws", 1) + "/v1/realtime")
    print("| through the server | right | n | note |\n|---|---|---|---|")
    if what in ("", "people"):
        people(server, n)
    if what in ("", "chat"):
        chat(server, n)
    if what in ("people", "chat"):
        return
    voice_alone = what == "voice"
    spoken, shown, seams = [], 0, np.zeros(2, int)
    sets = [("unseen voices", "test_voices", (0, 3), None), ("unseen voices, 12 dB noise", "test_voices", (0, 3), 12), ("unseen voices, start at 0-20 s", "test_voices", (0, 20), None),
            ("unseen phrasings", "test_phrasings", (0, 3), None)]
    for name, source, lead, snr in sets[:1] if voice_alone else sets:
        records, waves, r = json.loads((work() / f"{source}.json").read_text()), np.load(work() / f"{source}.npz"), random.Random(4)
        right = timely = 0
        for i in range(n):
            said, start, pieces = converse(server, waves[f"w{i}"], r.uniform(*lead), snr, i)
            right += said == records[i]["answer"]
            timely += start is not None and 0 <= start <= 1
            if said != records[i]["answer"] and shown < 30:
                shown += 1
                print("   ", (records[i]["text"], records[i]["answer"], said, start), flush=True)
            if pieces and said:
                spoken.append((resample_poly(np.concatenate(pieces), 2, 3).astype(np.float32), said))
                seams += rough_seams(pieces)
        row(name, right, n, f"starts in time {timely / n:.0%}")
    if (work() / "test_sights.json").exists() and not voice_alone:
        sighted(server, n)
    if spoken:
        sounds, texts = zip(*spoken)
        for closed in (True, False):
            words, whole, _ = recogniser.accuracy(sounds, texts, closed)
            row(f"its speech, pocketsphinx, {'closed grammar' if closed else 'bigram'}: words", words * len(texts), len(texts), f"whole sentences {whole:.0%}")
        own = recogniser.own_hearing(sounds, texts)
        if own is not None:
            row("its speech, its own ears, closed grammar: words", own[0] * len(texts), len(texts), f"phonemes {own[1]:.0%}")
        row("seams between its pieces without a bend of their own", seams[1] - seams[0], seams[1])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40, sys.argv[3] if len(sys.argv) > 3 else "")
