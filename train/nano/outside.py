"""Questions that the model cannot answer, and sound that is no question: it says so. Typed, spoken, or in other languages."""
import itertools, random, re
from .grammar import DATA, expand, plain
from .questions import HELD, TRAIN_WORDS, Question, proper
from .slots import cap

ANSWER = "Sorry, I did not understand."
TYPED_SHARE = .07   # of the rounds of typed chats
SPOKEN_SHARE = .08  # of the clips: a third each random words, questions outside the domain, other languages
LANGUAGES = "de fr-fr es it pl ru nl sv fi cs hu ro".split()  # of espeak-ng, for training
HELD_LANGUAGES = "pt tr el da sk hr".split()                  # for the test
HELD_QUESTIONS, STRANGERS = ([line for line in (DATA / file).read_text().splitlines() if line] for file in ("outside_held.txt", "strangers_outside.txt"))


def read():
    values = {}
    for line in (DATA / "outside_values.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, rest = line.split(":", 1)
            values[name] = [v.strip() for v in rest.split(";")]
    frames = [expand(line) for line in (DATA / "outside.txt").read_text().splitlines() if line and not line.startswith("#")]
    return frames, values


FRAMES, VALUES = read()
_held = set(map(plain, HELD_QUESTIONS + STRANGERS))


def question(r, written=False):
    """A question outside the domain, as it is spoken; never one of the held-out ones. written: with the names in capitals."""
    while True:
        text = re.sub(r"\{(\w)\}", lambda m: r.choice(VALUES[m[1]]), r.choice(r.choice(FRAMES)))
        if text.lower() not in _held and text.lower() not in HELD:
            return Question(proper(text) if written else text.lower(), ANSWER, "outside")


def words(r):
    """Random words that make no sense."""
    return Question(" ".join(r.choice(TRAIN_WORDS) for _ in range(r.randrange(2, 8))), ANSWER, "outside")


def typed(r, held=None):
    """The same as a person might type it, sometimes only keys. held: one of the held-out questions."""
    if held is None and r.random() < .12:
        text = "".join(r.choice("asdfghjklqwertyuiopzxcvbnm      ") for _ in range(r.randrange(4, 25))).strip() or "hm"
    else:
        text = held or (words(r) if r.random() < .15 else question(r, r.random() < .4)).text
    k = r.random()
    text = cap(text) if k < .65 else text
    k = r.random()
    return Question(text + ("?" if k < .4 else "." if k < .5 else ""), ANSWER, "outside")


def foreign(r, held=False):
    """(digits, language): espeak-ng reads them in that language, so no foreign text is needed."""
    return " ".join(str(r.randrange(10 ** r.randrange(1, 6))) for _ in range(r.randrange(1, 4))), r.choice(HELD_LANGUAGES if held else LANGUAGES)


def check():
    """No held-out question among the training ones, and no held-out language among those of training."""
    assert not set(LANGUAGES) & set(HELD_LANGUAGES) and len(HELD_QUESTIONS) == len(STRANGERS) == 100
    assert not set(itertools.chain.from_iterable(FRAMES)) & set(HELD_QUESTIONS) and not _held & HELD
    r = random.Random(1)
    assert not {question(r).text for _ in range(3000)} & _held


check()
