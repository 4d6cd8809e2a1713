"""Typed questions answered by a running server, and what another server made of the same. usage: python -m nano.answers http://HOST:PORT OUT.json [n],
then python -m nano.answers A.json B.json

n (1,000) questions in seen phrasings and n in unseen ones, each at temperature 0 and as the server samples; the server needs a seed and
--set worker.max_sessions=1. Compared are how many B answers wrongly that A answers rightly ("lost"), and the other way round ("won")."""
import json, pathlib, random, sys, types
from .questions import draw, typed


def ask(url, n):
    from .served import complete
    server, answers = types.SimpleNamespace(http=url), []
    for how in ({"temperature": 0}, {}):
        for held in (False, True):
            r = random.Random(61)
            for _ in range(n):
                q = typed(r, draw(r, held=held, repeat=0))
                said = complete(server, [dict(role="user", content=q.text)], **how)["content"] or ""
                answers.append(dict(greedy=bool(how), held=held, text=q.text, answer=q.answer, said=said.strip()))
    return answers


def compare(a, b):
    print("| typed questions | n | A right | B right | lost | won | same words |\n|---|---|---|---|---|---|---|")
    right = lambda one: one["said"] == one["answer"]
    for greedy in (True, False):
        for held in (False, True):
            pairs = [(x, y) for x, y in zip(a, b) if (x["greedy"], x["held"]) == (greedy, held)]
            count = lambda fits: sum(fits(x, y) for x, y in pairs)
            print(f"| {'unseen' if held else 'seen'} phrasings, {'greedy' if greedy else 'sampled'} | {len(pairs)} | {count(lambda x, y: right(x))} | {count(lambda x, y: right(y))} "
                  f"| {count(lambda x, y: right(x) and not right(y))} | {count(lambda x, y: right(y) and not right(x))} | {count(lambda x, y: x['said'] == y['said'])} |")


if __name__ == "__main__":
    first, second = sys.argv[1:3]
    if first.startswith("http"):
        pathlib.Path(second).write_text(json.dumps(ask(first, int(sys.argv[3]) if len(sys.argv) > 3 else 1000)))
    else:
        compare(*(json.loads(pathlib.Path(path).read_text()) for path in (first, second)))
