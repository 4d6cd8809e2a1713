#!/usr/bin/env python3
"""Makes strings.jsonl: random texts with the ids that Hugging Face's `tokenizers` (0.23.3 from PyPI) gives them.

usage: make_strings.py COUNT SEED OUT_FOLDER    from the root of the repository
Writes OUT_FOLDER/tokenizer.json, the whole vocabulary of MiniCPM-o 4.5 as the package saves it, and OUT_FOLDER/strings.jsonl.
The merges that merges.txt lacks are derived from the ids, which are ranks: a second implementation of what the server does.
"""
import json
import random
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

FILES = Path("tests/data/goldens/thinker/tokenizer_full")
PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def parts_below(token: str, rank: int, ranks: dict[str, int]) -> list[str]:
    parts = list(token)
    while len(parts) > 2:
        found = [(ranks[a + b], i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if ranks.get(a + b, rank) < rank]
        if not found:
            break
        at = min(found)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def all_merges(vocabulary: dict[str, int], listed: list[tuple[str, str]], added: set[str]) -> list[tuple[str, str]]:
    merges = {vocabulary[a + b]: (a, b) for a, b in listed}
    for token, rank in vocabulary.items():
        if rank not in merges and token not in added and len(parts := parts_below(token, rank, vocabulary)) == 2:
            merges[rank] = (parts[0], parts[1])
    return [merge for _, merge in sorted(merges.items())]


def make_tokenizer() -> Tokenizer:
    vocabulary = {token: i for i, token in enumerate(json.loads((FILES / "vocab.json").read_text(encoding="utf-8")))}
    added = json.loads((FILES / "tokenizer_config.json").read_text(encoding="utf-8"))["added_tokens_decoder"]
    listed = [tuple(line.split(" ")) for line in (FILES / "merges.txt").read_text(encoding="utf-8").splitlines() if line]
    made = Tokenizer(models.BPE(vocabulary, all_merges(vocabulary, listed, {a["content"] for a in added.values()})))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PATTERN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    for _, a in sorted(added.items(), key=lambda item: int(item[0])):
        token = AddedToken(a["content"], normalized=a["normalized"], special=a["special"])
        (made.add_special_tokens if a["special"] else made.add_tokens)([token])
    return made


def character(chance: random.Random, *ranges: tuple[int, int]) -> str:
    low, high = chance.choice(ranges)
    return chr(chance.randint(low, high))


def pieces(tokenizer: Tokenizer):
    """Functions that draw a piece of text each."""
    specials = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
    words = [tokenizer.decode([i], skip_special_tokens=False) for i in range(151643)]
    words = [w for w in words if "\ufffd" not in w]
    han = [w for w in words if any("\u4e00" <= c <= "\u9fff" for c in w)]
    kana = [w for w in words if any("\u3040" <= c <= "\u30ff" for c in w)]
    hangul = [w for w in words if any("\uac00" <= c <= "\ud7a3" for c in w)]
    latin = [w for w in words if w.isascii()]
    return {
        "chinese": [lambda r: r.choice(han), lambda r: character(r, (0x4E00, 0x9FA5)), lambda r: r.choice("，。！？、：；「」（）《》…　")],
        "japanese": [lambda r: r.choice(kana), lambda r: r.choice(han), lambda r: character(r, (0x3041, 0x3096), (0x30A1, 0x30FA), (0xFF66, 0xFF9D))],
        "korean": [lambda r: r.choice(hangul), lambda r: character(r, (0xAC00, 0xD7A3)), lambda r: character(r, (0x1100, 0x1112), (0x1161, 0x1175), (0x11A8, 0x11C2)), lambda r: " "],
        "other": [
            lambda r: r.choice(latin),
            lambda r: r.choice(words),
            lambda r: str(r.randint(0, 99999)),
            lambda r: r.choice([" ", "  ", "\n", "\r\n", "\t", " \n ", "'s", "'LL", "e\u0301", "n\u0303", "\u200d", "½", "٣"]),
            lambda r: character(r, (0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x400, 0x45F), (0x391, 0x3A1), (0x5D0, 0x5EA), (0x621, 0x63A), (0xC0, 0x24F)),
        ],
        "special": [lambda r: r.choice(specials), lambda r: r.choice(specials)[: r.randint(1, 12)], lambda r: r.choice(["<|", "|>", "<", ">", "</"])],
    }


def random_text(chance: random.Random, kinds) -> str:
    kind = chance.choice(["chinese", "chinese", "japanese", "korean", "mixed", "special"])
    if kind in ("chinese", "japanese", "korean"):
        drawn = [kind] * 9 + ["other"]
    elif kind == "special":
        drawn = ["special", "special", "chinese", "other"]
    else:
        drawn = list(kinds)
    return "".join(chance.choice(kinds[chance.choice(drawn)])(chance) for _ in range(chance.randint(1, 12)))


def main() -> None:
    count, seed, out = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    tokenizer = make_tokenizer()
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    chance, kinds = random.Random(seed), pieces(tokenizer)
    with (out / "strings.jsonl").open("w", encoding="utf-8") as file:
        for _ in range(count):
            text = random_text(chance, kinds)
            print(json.dumps([text, tokenizer.encode(text, add_special_tokens=False).ids], ensure_ascii=False, separators=(",", ":")), file=file)


if __name__ == "__main__":
    main()
