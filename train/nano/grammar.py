"""Phrasings as tiny grammars: "(a|b) c [d]" stands for a c, b c, a c d, b c d; nesting is allowed."""
import pathlib

DATA = pathlib.Path(__file__).parent / "data"


def _alternatives(text, i, stop):
    """Expansions of text[i:] up to an unnested `stop` character; returns (list, index after stop)."""
    done, current = [], [""]
    while i < len(text):
        c = text[i]
        if c in stop:
            return done + current, i + 1
        if c == "|":
            done, current, i = done + current, [""], i + 1
        elif c == "(":
            inner, i = _alternatives(text, i + 1, ")")
            current = [a + b for a in current for b in inner]
        elif c == "[":
            inner, i = _alternatives(text, i + 1, "]")
            current = [a + b for a in current for b in inner + [""]]
        else:
            current, i = [a + c for a in current], i + 1
    return done + current, i


def expand(text):
    """All phrases of one grammar line, single-spaced, in a fixed order, without repeats."""
    phrases, _ = _alternatives(text, 0, "")
    return list(dict.fromkeys(" ".join(p.split()) for p in phrases))


def read_pairs(file, mark):
    """[(what is left of the mark, what is right of it)] of the lines of a file in data."""
    lines = (DATA / file).read_text().splitlines()
    return [tuple(part.strip() for part in line.split(mark, 1)) for line in lines if line and not line.startswith("#")]


def read_named(file):
    """[(name, line)] of a file in data in which "@name" opens the lines of one."""
    named = []
    for line in (DATA / file).read_text().splitlines():
        if line.startswith("@"):
            name = line[1:].strip()
        elif line and not line.startswith("#"):
            named.append((name, line.strip()))
    return named


def plain(text):
    """As a question is spoken: lower case, without marks."""
    return text.lower().replace(",", "").rstrip("?!.")


def read_intents():
    """{name: (answer, training phrasings, held-out phrasings)} from data/intents.txt and, for training, phrasings.txt."""
    intents = {}
    for line in (DATA / "intents.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("@"):
            name, answer = (part.strip() for part in line[1:].split("|", 1))
            intents[name] = (answer, [], [])
        else:
            held = line.startswith("~")
            intents[name][2 if held else 1].extend(expand(line.lstrip("~")))
    for name, phrasing in read_named("phrasings.txt"):
        intents[name][1].append(phrasing)
    kept = {p for _, _, held in intents.values() for p in held} | {plain(text) for _, text in read_pairs("own_words.txt", "|")}
    intents = {name: (answer, [p for p in dict.fromkeys(train) if p not in kept], held) for name, (answer, train, held) in intents.items()}
    for name, (_, train, held) in intents.items():
        assert train and held, name
    return intents


def read_words():
    """(training words, held-out words): every 17th word of the list is never trained."""
    words = (DATA / "words.txt").read_text().split()
    held = words[5::17]
    return [w for w in words if w not in set(held)], held
