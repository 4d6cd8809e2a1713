"""Draws questions with answers from all intents. Held-out phrasings and words never reach training."""
import random, re
from collections import namedtuple
from . import slots
from .grammar import expand, plain, read_intents, read_pairs, read_words

Question = namedtuple("Question", "text answer intent")

INTENTS = read_intents()
FRAMES = {(name, held): slots.frames(name, held) for name in slots.SLOTS for held in (False, True)}
PLAIN = {name: slots.plain_frames(name) for name in slots.SLOTS}
_used = {w for _, a, b in INTENTS.values() for p in a + b for w in p.split()} | {w for f in FRAMES.values() for p in f for w in p.split()} \
    | {w for rows in slots.TABLES.values() for row in rows for cell in row if cell for w in cell.split()} | set(slots.NUM) | {x.lower() for x in slots.DAYS + slots.MONTHS}
TRAIN_WORDS, HELD_WORDS = read_words()
TRAIN_WORDS, HELD_WORDS = TRAIN_WORDS + [w for w in HELD_WORDS if w in _used], [w for w in HELD_WORDS if w not in _used]
REPEAT = [[f for line in side for f in expand(line)] for side in slots.REPEAT]
OWN_WORDS = [Question(text, INTENTS[name][0], name) for name, text in read_pairs("own_words.txt", "|")]
STRANGERS = [Question(text, answer, "stranger") for answer, text in read_pairs("strangers.txt", "|")]
HELD = {p for _, _, held in INTENTS.values() for p in held} | {f for (_, held), frames in FRAMES.items() if held for f in frames} | {plain(q.text) for q in OWN_WORDS}
# The weight of a slot question, where a fixed intent has 1: larger for slots with more values.
SLOT_WEIGHT = dict(add=9, sub=9, mul=4, div=3, opposite=8, capital=4, colour=4, bigger=3, smaller=3, spell=5, fact_yes=4, fact_no=4, count=3, kind=4)
PLAIN_SHARE = .5  # of the slot questions are asked as most people do, which is one of a hundred phrasings: in one of slots.py, half of them in its first one
NAMES = list(INTENTS) + list(slots.SLOTS)
WEIGHTS = [1] * len(INTENTS) + [SLOT_WEIGHT.get(n, 2.5) for n in slots.SLOTS]
LEAD = ["hey parley", "parley", "okay", "excuse me", "so", "please", "hello", "hi", "hello parley"]
# Words that people type before and after a question, and their short forms.
BEFORE = ["hey", "well", "oh", "um", "okay so", "alright", "listen", "by the way", "so tell me", "sorry but", "just wondering", "i was wondering", "one question", "another question", "and", "but", "dear parley",
          "honestly", "actually", "maybe you know", "good to see you", "wow", "right", "yes", "now", "i have a question", "can i ask", "let me ask", "hm", "hey you", "hi there", "parley"]
AFTER = ["please", "then", "by the way", "thanks", "thank you", "parley", "my friend", "if i may ask", "just asking", "i wonder", "do you know", "for me", "really", "actually", "though", "again", "or what"]
SHORT = [(re.compile(rf"\b{long}\b"), short) for long, short in (
    ("i am", "i'm"), ("i have", "i've"), ("i will", "i'll"), ("i would", "i'd"), ("you are", "you're"), ("you have", "you've"), ("it is", "it's"), ("that is", "that's"), ("what is", "what's"),
    ("who is", "who's"), ("where is", "where's"), ("when is", "when's"), ("how is", "how's"), ("there is", "there's"), ("let us", "let's"), ("do not", "don't"), ("does not", "doesn't"),
    ("did not", "didn't"), ("is not", "isn't"), ("are not", "aren't"), ("was not", "wasn't"), ("have not", "haven't"), ("cannot", "can't"), ("could not", "couldn't"), ("would not", "wouldn't"),
    ("will not", "won't"), ("we are", "we're"), ("going to", "gonna"), ("want to", "wanna"), ("have got to", "gotta"), ("tell me", "tell us"), ("you", "u"), ("okay", "ok"), ("please", "pls"))]
PROPER = {name.lower(): name for name in slots.DAYS + slots.MONTHS + [row[0].capitalize() for table in ("capital", "continent", "tongue") for row in slots.TABLES[table]]
          + [y for table in ("capital", "tongue") for _, y in slots.TABLES[table]]}
DIGIT = {w: str(i) for i, w in enumerate(slots.NUM)}
# General ways to ask, placed before any phrasing that they fit. They never produce a held-out phrasing of an intent.
ASKING = {w: ["tell me", "can you tell me", "could you tell me", "do you know", "please tell me", "now tell me", "i want to know", "can you say"] for w in "what what's which who where when why how".split()}
ASKING.update({w: ["can you", "could you", "please", "would you", "now"] for w in "tell name add subtract take multiply divide double count spell give say repeat calculate explain describe introduce".split()})
ASKING.update({w: ["can you tell me", "could you tell me", "tell me", "do you know"] for w in "{a} the opposite capital half".split()})


def reworded(r, frame, held_out):
    """A training phrasing after a general way to ask, unless that makes one of the held-out phrasings."""
    ways = ASKING.get(frame.split()[0])
    other = f"{r.choice(ways)} {frame}" if ways else frame
    return frame if other in held_out else other


def draw(r, held=False, repeat=.08, words=None, lead=.06, reword=0):
    """A plain lower-case question as it is spoken. r: random.Random; held: use a phrasing kept for tests; words: list
    for "repeat"; reword: share of training phrasings that follow a general way to ask."""
    if r.random() < repeat:
        fill, answer = slots._repeat(words or TRAIN_WORDS)(r)
        return Question(r.choice(REPEAT[held]).format(**fill), answer, "repeat")
    name = r.choices(NAMES, WEIGHTS)[0]
    if name in INTENTS:
        answer, train, test = INTENTS[name]
        frame, fill = r.choice(test if held else train), {}
    else:
        fill, answer = slots.SLOTS[name][0](r)
        frames = PLAIN[name][:r.choice([1, None])] if not held and r.random() < PLAIN_SHARE else FRAMES[name, held]
        frame, test = r.choice(frames), FRAMES[name, True]
    if not held and reword and r.random() < reword:
        frame = reworded(r, frame, test)
    if not held and r.random() < lead:
        other = f"{r.choice(LEAD)} {frame}"
        frame = frame if other in HELD else other
    text = frame.format(**fill).lower()
    return Question(text, answer, name)


def in_digits(text):
    return " ".join(DIGIT.get(w, w) for w in text.split())


def proper(text):
    """With the names and the word "I" in capitals."""
    return " ".join(PROPER.get(w, "I" + w[1:] if w.split("'")[0] == "i" else w) for w in text.split())


def plainly(most=40):
    """Every slot's first phrasing as it is written, every second question with digits: up to `most` each, the same ones every time."""
    r, asked = random.Random(67), []
    for name, (sample, _, _) in slots.SLOTS.items():
        found = {PLAIN[name][0].format(**fill).lower(): answer for fill, answer in (sample(r) for _ in range(300))}
        asked += [Question(slots.cap(proper(in_digits(text) if i % 2 else text)) + "?", answer, name) for i, (text, answer) in enumerate(list(found.items())[:most])]
    return asked


def typed(r, question):
    """The same question as a person might type it: digits, capitals, punctuation."""
    text = question.text
    if question.intent in slots.SLOTS and r.random() < .4:
        text = in_digits(text)
        if r.random() < .3:
            for word, sign in (("plus", "+"), ("minus", "-"), ("times", "*"), ("divided by", "/")):
                text = text.replace(word, sign)
    k = r.random()
    if k < .4:
        text = proper(text)
    if k < .65:
        text = slots.cap(text)
    k = r.random()
    return question._replace(text=text + ("?" if k < .4 else "." if k < .5 else ""))


def mistyped(r, word):
    """With a letter left out, doubled, or in its neighbour's place."""
    i = r.randrange(1, len(word) - 1)
    return word[:i] + r.choice([word[i + 1:], word[i] + word[i:], word[i + 1] + word[i] + word[i + 2:]])


def casual(r, question):
    """The same plain question as people put it when they type: short forms, words around it, a slip of the finger. For training."""
    text, intents = question.text, question.intent in INTENTS
    for long, short in SHORT:
        if r.random() < .3:
            text = long.sub(short, text)
    if intents and r.random() < .08:
        words = text.split()
        i = r.randrange(len(words))
        text = " ".join(words[:i] + [mistyped(r, words[i]) if len(words[i]) > 3 and words[i].isalpha() else words[i]] + words[i + 1:])
    if len(text.split()) > 2:
        if r.random() < .12:
            text = r.choice(BEFORE) + r.choice([", ", " "]) + text
        if intents and r.random() < .08:
            text += r.choice([", ", " "]) + r.choice(AFTER)
    if question.intent.startswith("letter_") and r.random() < .5:
        text = " ".join(w.upper() if len(w) == 1 and w in question.text.split() and w not in ("a", "i") else w for w in text.split())
    return question if text in HELD else question._replace(text=text)


def typed_question(r):
    """A training question as a person might type it."""
    return typed(r, casual(r, draw(r, reword=.2)))


def copy_drill(r, held=False, held_words=False):
    """"Reply with exactly: …" with words, numbers and random strings, so that the model learns to copy and not the
    list."""
    pool = HELD_WORDS if held_words else TRAIN_WORDS
    letters = "abcdefghijklmnopqrstuvwxyz"
    if held or held_words:
        parts = [r.choice(pool) for _ in range(r.choice([1, 1, 2, 3]))]
    else:
        parts = []
        for _ in range(r.choice([1, 1, 2, 2, 3, 4])):
            k = r.random()
            parts.append(r.choice(pool) if k < .55 else "".join(r.choice(letters) for _ in range(r.randrange(2, 8))) if k < .75
                         else str(r.randrange(1000)) if k < .82 else r.choice(letters).upper() + str(r.randrange(10)) if k < .86
                         else r.choice(pool)[:r.randrange(2, 6)] + r.choice(pool)[-r.randrange(2, 6):])
    text, k = " ".join(parts), r.random()
    text = text.upper() if k < .12 else text.capitalize() if k < .3 else text.title() if k < .35 else text
    text += "." if r.random() < .12 else "!" if r.random() < .05 else ""
    return Question(r.choice(slots.EXACT[held]).format(x=text), text, "exact")
