"""Writes typed conversations as lists of token ids, one to a line, to compare what quantized weights and exact ones predict. usage: python -m nano.chats MODEL OUT [n]

A quarter as in training, the others one to three questions, in seen and in held-out phrasings by turns."""
import json, pathlib, random, sys
from . import layouts
from .questions import draw, typed
from .tokenizer import Text


def conversations(text, n):
    r, made = random.Random(71), []
    while len(made) < n:
        k = len(made)
        questions = lambda: [typed(r, draw(r, held=k % 2 == 1, repeat=0)) for _ in range(r.choice([1, 1, 2, 3]))]
        ids = (layouts.random_chat(text, r) if k % 4 == 0 else layouts.chat(text, r, questions()))[0]
        if min(ids) >= 0:  # no rows of pictures
            made.append(ids)
    return made


if __name__ == "__main__":
    lines = [json.dumps(ids) for ids in conversations(Text(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 100)]
    pathlib.Path(sys.argv[2]).write_text("[\n" + ",\n".join(lines) + "\n]\n")
