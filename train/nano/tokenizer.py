"""The checkpoint's tokenizer: byte-level BPE in the Qwen2 file format, merges learnt from our own sentences, the added tokens of MiniCPM-o 4.5.

Merges never join a space with part of a word. Only frequent whole words get a twin with a leading space, at the end of the list.
Other words share their tokens with and without a space, so that "Reply with exactly: wool" can be learnt as copying."""
import collections, json, pathlib, random, shutil, sys
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SIZE = 2048   # total number of ids: 256 bytes, merges, <unk>, 105 other added tokens
TWINS = 460   # words with a second token that includes a leading space
SPACE = "Ġ"   # how byte-level BPE writes a space


def _bare(model):
    tok = Tokenizer(model)
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), "isolated"),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    return tok


class Text:
    """Encodes and decodes with the files of a checkpoint folder; `id` maps added tokens to ids."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        vocab = json.loads((folder / "vocab.json").read_text())
        merges = [tuple(l.split(" ")) for l in (folder / "merges.txt").read_text().split("\n") if l]
        config = json.loads((folder / "tokenizer_config.json").read_text())
        self.bad = config["bad_token_ids"]
        self.space = vocab[SPACE]
        self.base = len(vocab)  # the first added id; all below are text
        self.tok = _bare(models.BPE(vocab, merges))
        added = sorted((int(i), t["content"]) for i, t in config["added_tokens_decoder"].items())
        self.tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for _, t in added])
        self.id = {t: i for i, t in added}
        assert all(self.tok.token_to_id(t) == i for i, t in added)
        self.size = self.base + len(added)
        self.cache = {}

    def encode(self, text):
        if len(text) > 80:
            return self.tok.encode(text).ids
        if text not in self.cache:
            if len(self.cache) > 200000:
                self.cache.clear()
            self.cache[text] = self.tok.encode(text).ids
        return list(self.cache[text])

    def spoken(self, text):
        """The tokens of a spoken sentence, without bare spaces, which nobody hears."""
        return [i for i in self.encode(text) if i != self.space]

    def decode(self, ids):
        return self.tok.decode(list(ids), skip_special_tokens=True)


def corpus(n=120000):
    """Sentences whose frequent pieces become tokens: questions in both spellings, answers, every training word."""
    from .questions import TRAIN_WORDS, copy_drill, draw, typed
    r = random.Random(11)
    for _ in range(n):
        q = draw(r, repeat=.02)
        yield from (q.text, q.answer, typed(r, q).text)
        if r.random() < .05:
            yield copy_drill(r).text
    for w in TRAIN_WORDS:
        yield from [f"{w} {w} and {w}", w.capitalize()] * 12
    yield from ["You are a helpful assistant.", "Streaming Omni Conversation.", "You are Parley, a friendly assistant.", "system\n", "user\n", "assistant\n", "\n\n"] * 500


def build(template, out):
    """Learns the merges and writes the tokenizer files; added tokens come in order from the folder `template`."""
    template, out = pathlib.Path(template), pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    config = json.loads((template / "tokenizer_config.json").read_text())
    added = [t for _, t in sorted((int(i), t) for i, t in config["added_tokens_decoder"].items())]
    base = SIZE - len(added)
    tok = _bare(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([tok.pre_tokenizer, pre_tokenizers.Split(SPACE, "isolated")])
    lines = list(corpus())
    tok.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=base - TWINS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    model = json.loads(tok.to_str())["model"]
    vocab, old = model["vocab"], json.loads((template / "vocab.json").read_text())
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    after_space = collections.Counter(w for line in lines for w in line.split(" ")[1:] if w in vocab and w.isalpha())
    for word, _ in after_space.most_common(base - len(vocab)):
        merges.append(f"{SPACE} {word}")
        vocab[SPACE + word] = len(vocab)
    assert len(vocab) == base and all(old[t] == i for t, i in vocab.items() if i < 256), "byte tokens must keep their ids"
    banned = {t for t, i in old.items() if i < 256 and i in set(config["bad_token_ids"])}
    config["bad_token_ids"] = sorted(i for t, i in vocab.items() if any(c in banned for c in t))
    config["added_tokens_decoder"] = {str(base + k): t for k, t in enumerate(added)}
    dump = lambda name, x: (out / name).write_text(json.dumps(x, ensure_ascii=False, indent=1) + "\n")
    dump("vocab.json", vocab)
    (out / "merges.txt").write_text("\n".join(merges) + "\n")
    dump("tokenizer_config.json", config)
    dump("added_tokens.json", {t["content"]: base + k for k, t in enumerate(added) if t["content"] != "<unk>"})
    for name in ("special_tokens_map.json",):
        shutil.copyfile(template / name, out / name)
    return out


if __name__ == "__main__":
    text = Text(build(sys.argv[1], sys.argv[2]))
    for s in ("what is your name", "Reply with exactly: walnut violin zqx", "Seven plus five is twelve."):
        print(text.size, [text.decode([i]) for i in text.encode(s)])
