"""What a picture shows, questions about it and their answers. Splits: phrasings marked "~" and some pairs of colour and shape never reach training.

A picture shows up to five equal shapes. The words below occur in answers; each row of a picture stands for one of them (see `fields`)."""
from collections import namedtuple
from . import outside
from .grammar import DATA, expand
from .slots import cap

COLOURS = "red green blue yellow orange purple pink black white brown gray".split()
SHAPES = "circle square triangle star cross heart diamond ring".split()
NUMBERS = "one two three four five".split()
DOWN, ACROSS = "top middle bottom".split(), "left middle right".split()
KINDS = "colour shape number place all is_colour is_shape".split()
KIND_WEIGHTS = [5, 5, 2, 2, 2, 1, 1]
ROWS = 16          # rows of a picture: five fields, three times each, and one empty row
NO_PICTURE = "I see no picture."
OTHER = -1         # the number of a picture of something else
OTHER_SHARE = .08  # of the pictures for training
HELD_PAIRS = {(COLOURS[(3 * k + 1) % 11], SHAPES[k]) for k in range(8)}

Sight = namedtuple("Sight", "colour shape number down across")  # number 0: nothing there, OTHER: something else than shapes; down, across: place of a single shape, else None
Asked = namedtuple("Asked", "text kind shape colour many")      # shape, colour: those that the question names; many: whether its wording is plural, None if it does not show


def read_frames():
    """{(kind, held): [frames]} of data/sights.txt."""
    found = {(kind, held): [] for kind in KINDS for held in (False, True)}
    for line in (DATA / "sights.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            kind, frame = line.lstrip("~").split(":", 1)
            found[kind, line.startswith("~")] += expand(frame.strip())
    for kind in KINDS:
        held = set(found[kind, True])
        found[kind, False] = [f for f in found[kind, False] if f not in held]
    return found


FRAMES = read_frames()


def a(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def plural(word):
    return word + ("es" if word == "cross" else "s")


def ask(r, held=False, kind=None):
    """One question as it is spoken, not yet about any picture."""
    kind = kind or r.choices(KINDS, KIND_WEIGHTS)[0]
    frame = r.choice(FRAMES[kind, held])
    many = r.random() < .3 and kind not in ("number", "place")
    shape, colour = r.choice(SHAPES), r.choice(COLOURS)
    things = (["they", "these", "the shapes", "the things"] if many else ["it", "this", "the shape", "the thing"])
    named = f"the {plural(shape)}" if many else f"the {shape}"
    it = named if r.random() < .4 else r.choice(things)
    thing = r.choice(things)
    if "{" in frame and frame.split("{it}")[0].endswith(" of ") or "see {it}" in frame:
        it, thing = it.replace("they", "these"), thing.replace("they", "these")
    text = frame.format(it=it, thing=thing, shapes=plural(shape), colour=colour, **{"is": "are" if many else "is", "does": "do" if many else "does",
                        "are_there": ("are " if many else "is ") + r.choice(things[:2]), "a_shape": plural(shape) if many else a(shape)})
    worded = any(f"{{{w}}}" in frame for w in ("it", "thing", "is", "does", "are_there"))
    return Asked(text, kind, shape if shape in text else None, colour if kind == "is_colour" else None, many if worded else None)


def fits(asked, sight):
    """Whether the question makes sense for this picture."""
    if sight.number <= 0:
        return True
    if asked.kind == "place" and sight.number != 1:
        return False
    if asked.kind != "is_shape" and asked.shape not in (None, sight.shape):
        return False
    return asked.many is None or asked.many == (sight.number > 1)


def place(sight):
    """The place of the shape, in words."""
    if sight.down == sight.across == "middle":
        return "In the middle."
    if sight.down == "middle":
        return f"On the {sight.across}."
    return f"At the {sight.down}." if sight.across == "middle" else f"At the {sight.down} {sight.across}."


def answer(asked, sight):
    """The answer to the question; sight None: no picture was shown."""
    if sight is None:
        return NO_PICTURE
    if sight.number == OTHER:
        return outside.ANSWER
    if sight.number == 0:
        return "I see nothing."
    many, things = sight.number > 1, plural(sight.shape)
    if asked.kind == "colour":
        return f"{'They are' if many else 'It is'} {sight.colour}."
    if asked.kind == "shape":
        return f"They are {things}." if many else f"It is {a(sight.shape)}."
    if asked.kind == "number":
        return f"I see {NUMBERS[sight.number - 1]}."
    if asked.kind == "place":
        return place(sight)
    if asked.kind == "all":
        return cap(f"{NUMBERS[sight.number - 1]} {sight.colour} {things}." if many else f"{a(sight.colour)} {sight.shape}.")
    right = asked.colour == sight.colour if asked.kind == "is_colour" else asked.shape == sight.shape
    return ("Yes, they are." if right else "No, they are not.") if many else "Yes, it is." if right else "No, it is not."


def random_sight(r, held=False, asked=None, other=False):
    """Random content for a picture, fitting the question if one is given; held: a pair of colour and shape that
    training never uses; other: sometimes something else than shapes."""
    if other and r.random() < OTHER_SHARE:
        return Sight(r.choice(COLOURS), r.choice(SHAPES), OTHER, None, None)
    while True:
        colour, shape = r.choice(sorted(HELD_PAIRS)) if held else (r.choice(COLOURS), r.choice(SHAPES))
        if not held and (colour, shape) in HELD_PAIRS:
            continue
        if asked and r.random() < .5:  # so that "yes" is as frequent as "no", and a named shape is soon met
            colour, shape = asked.colour or colour, asked.shape or shape
            if ((colour, shape) in HELD_PAIRS) != held:
                continue
        number = r.choices(range(6), [3, 60, 10, 9, 9, 9])[0] if not held else r.choices(range(1, 6), [6, 1, 1, 1, 1])[0]
        sight = Sight(colour, shape, number, r.choice(DOWN) if number == 1 else None, r.choice(ACROSS) if number == 1 else None)
        if asked is None or fits(asked, sight):
            return sight


def word_tokens(text):
    """{word: the token that names it in the rows of a picture}: the longest token of its spelling that no other word
    has."""
    found = {}
    for word in COLOURS + SHAPES + NUMBERS + DOWN + ACROSS + ["other"]:
        if word not in found:
            tokens = sorted(text.spoken(" " + word), key=lambda i: -len(text.decode([i]).strip()))
            found[word] = next(i for i in tokens if i not in found.values())
    return found


def fields(sight, tokens, blank):
    """The tokens for a picture's rows: colour, shape, number, place down and across, three times over; `blank` where
    there is nothing to say; something else than shapes is "other"."""
    one = [blank if sight.number != OTHER else tokens["other"]] * 5
    if sight.number > 0:
        one[:3] = [tokens[sight.colour], tokens[sight.shape], tokens[NUMBERS[sight.number - 1]]]
    if sight.number == 1:
        one[3:] = [tokens[sight.down], tokens[sight.across]]
    return one * 3 + [blank]


def answers():
    """Every answer about a picture, for training the voice."""
    said = {NO_PICTURE, "I see nothing.", "Yes, it is.", "Yes, they are.", "No, it is not.", "No, they are not."}
    for colour in COLOURS:
        for shape in SHAPES:
            for number in range(1, 6):
                for down in DOWN:
                    for across in ACROSS:
                        said.update(answer(Asked("", kind, None, None, None), Sight(colour, shape, number, down, across)) for kind in KINDS[:5])
    return sorted(said)
