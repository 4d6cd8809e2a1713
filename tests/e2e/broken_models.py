"""Model folders that are broken in some way: each entry of BROKEN changes one thing of a sound folder."""
import io
import json
import os
import random
import shutil
import struct
import zipfile
from pathlib import Path

from conftest import TINY

WEIGHTS = "model.safetensors"
NETWORKS = "assets/token2wav/"
FLOW, CAMPPLUS, VOICE = NETWORKS + "flow.pt", NETWORKS + "campplus.onnx", "assets/default_voice.wav"
HUGE = 2**31 - 1
BROKEN = {}  # by name: a function that breaks the folder


def original(name: str) -> bytes:
    return (TINY / name).read_bytes()


def put(folder: Path, name: str, data: bytes | str) -> None:
    path = folder / name
    path.unlink()
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def sound_folder(folder: Path) -> Path:
    """Links to every file of the model."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in TINY.rglob("*"):
        if path.is_file():
            link = folder / path.relative_to(TINY)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
    return folder


def replaced(label: str, name: str, make) -> None:
    """Another file in its place. `make` gives its bytes, given those of the original."""
    BROKEN[label] = lambda folder: put_new(folder, name, make)


def put_new(folder: Path, name: str, make) -> None:
    data = make(original(name)) if (TINY / name).exists() else make(b"")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(folder / name):
        put(folder, name, data)
    else:
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


# ---- the weights


def split(data: bytes) -> tuple[dict, bytes]:
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def join(header: dict | str, data: bytes) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + data


def with_header(label: str, change) -> None:
    """`change(header, names, data)` changes the header in place, or gives other data, or the whole file."""

    def make(file: bytes) -> bytes:
        header, data = split(file)
        made = change(header, [name for name in header if name != "__metadata__"], data)
        return made if isinstance(made, bytes) and made[:1] != b"+" else join(header, made[1:] if made else data)

    replaced("weights-" + label, WEIGHTS, make)


for cut in (0, 4, 8, 100, 10000, -1, -100000):
    replaced(f"weights-cut{cut}", WEIGHTS, lambda file, cut=cut: file[:cut] if cut else b"")
with_header("header-huge", lambda h, n, x: struct.pack("<Q", 2**63) + b"{}" + x)
with_header("header-100M", lambda h, n, x: struct.pack("<Q", 99_999_999) + b" " * 1000)
with_header("header-long", lambda h, n, x: join("{" + ",".join(f'"{i}":0' for i in range(2_000_000)) + "}", x))
with_header("header-array", lambda h, n, x: join("[1]", x))
with_header("header-deep", lambda h, n, x: join('{"a":' * 1000000 + "1" + "}" * 1000000, x))
with_header("no-tensors", lambda h, n, x: join("{}", x))
with_header("overlap", lambda h, n, x: h[n[1]].update(data_offsets=h[n[0]]["data_offsets"], shape=h[n[0]]["shape"]))
with_header("beyond", lambda h, n, x: h[n[-1]].update(data_offsets=[len(x), len(x) + 100]))
with_header("reversed", lambda h, n, x: h[n[0]].update(data_offsets=h[n[0]]["data_offsets"][::-1]))
with_header("shape-overflow", lambda h, n, x: h[n[0]].update(shape=[2**32, 2**32, 4]))
with_header("shape-ones", lambda h, n, x: h[n[0]].update(shape=[1] * 100000 + h[n[0]]["shape"]))
with_header("shape-zero-huge", lambda h, n, x: h[n[0]].update(shape=[0, 2**62], data_offsets=[0, 0]))
with_header("negative", lambda h, n, x: h[n[0]].update(shape=[-1]))


def elements(shape: list[int]) -> int:
    product = 1
    for extent in shape:
        product *= extent
    return product


def other_type(dtype: str, size: int):
    def change(header, names, data):
        out = bytearray(data)
        for name in names[:400]:
            entry = header[name]
            entry["dtype"], entry["data_offsets"] = dtype, [len(out), len(out) + elements(entry["shape"]) * size]
            out += bytes(elements(entry["shape"]) * size)
        return b"+" + bytes(out)

    return change


for dtype, size in (("F64", 8), ("I64", 8), ("U8", 1), ("BOOL", 1), ("F8_E4M3", 1), ("C64", 8), ("I16", 2), ("U16", 2), ("F32", 4)):
    with_header(f"type-{dtype}", other_type(dtype, size))
for label, value in (("nan", b"\xff\x7f"), ("inf", b"\x80\x7f"), ("zero", b"\x00\x00"), ("max", b"\x7f\x7f")):
    with_header(f"all-{label}", lambda h, n, x, value=value: b"+" + value * (len(x) // 2))


def transposed(prefix):
    def change(header, names, _):
        entry = next(header[n] for n in names if n.startswith(prefix) and len(header[n]["shape"]) == 2)
        rows, columns = entry["shape"]
        entry["shape"] = [columns, rows] if rows != columns else [rows * 2, columns // 2]

    return change


for prefix in ("llm.model", "llm.lm_head", "vpm", "resampler", "apm", "audio_projection_layer", "tts"):
    with_header(f"transposed-{prefix}", transposed(prefix))
    with_header(f"missing-{prefix}", lambda h, n, x, prefix=prefix: h.pop([k for k in n if k.startswith(prefix)][-1]) and None)
    with_header(f"flat-{prefix}", lambda h, n, x, prefix=prefix: [h[k].update(shape=[elements(h[k]["shape"])]) for k in n if k.startswith(prefix)] and None)


# ---- the configuration


def config(path: tuple[str, ...], value) -> None:
    def make(file: bytes) -> str:
        whole = json.loads(file)
        part = whole
        for key in path[:-1]:
            part = part[key]
        if value is KeyError:
            part.pop(path[-1], None)
        else:
            part[path[-1]] = value
        return json.dumps(whole)

    replaced(f"config-{'.'.join(path)}={str(value)[:24]}", "config.json", make)


NUMBERS = {
    (): {
        "vocab_size": (1, 100, 1863, HUGE), "hidden_size": (1, 255, HUGE), "intermediate_size": (1, HUGE), "num_hidden_layers": (1, 2, HUGE),
        "num_attention_heads": (1, 3, HUGE), "num_key_value_heads": (3, 4, HUGE), "head_dim": (47, 1, HUGE, 96),
        "max_position_embeddings": (1, 10, 10_000_000, HUGE), "rope_theta": (0, -1, 1e308, "x"), "rms_norm_eps": (-1, 0, 1e30, "x"),
        "query_num": (1, 63, HUGE), "image_size": (1, HUGE), "vision_batch_size": (HUGE, 1), "audio_pool_step": (1, HUGE, 100000),
        "audio_chunk_length": (0, -1, 1e300, 0.0001), "vision_config": ([], KeyError), "audio_config": ([], KeyError), "tts_config": ([], KeyError),
        "slice_config": ([], KeyError), "init_vision": ("yes",), "init_audio": (False,), "init_tts": (False,), "rope_scaling": ({"type": "yarn", "factor": 4},),
    },
    ("vision_config",): {
        "patch_size": (1, 13, HUGE, 500), "image_size": (1, 14, HUGE), "hidden_size": (1, 47, HUGE), "num_attention_heads": (5, 48, HUGE),
        "num_hidden_layers": (0, 1, HUGE),
    },
    ("audio_config",): {
        "d_model": (63, HUGE), "encoder_layers": (1, HUGE), "encoder_attention_heads": (3, 64, HUGE), "num_mel_bins": (1, 128, HUGE),
        "max_source_positions": (1, 10, 60, HUGE),
    },
    ("tts_config",): {
        "hidden_size": (31, HUGE), "num_text_tokens": (1, HUGE), "audio_bos_token_id": (-1, HUGE, 2000), "text_eos_token_id": (-1, HUGE),
        "num_attention_heads": (3, 32, 0, -4), "num_key_value_heads": (1, 0), "streaming_sliding_window_audio_window_size": (1, HUGE),
        "attention_type": ("reindex", "x", 5), "num_audio_tokens": (1, HUGE), "num_hidden_layers": (HUGE,),
    },
    ("slice_config",): {"max_slice_nums": (HUGE, 1), "scale_resolution": (1, HUGE, 100000, 14)},
}
for part, keys in NUMBERS.items():
    for key, values in keys.items():
        for value in values:
            config((*part, key), value)
for key, value in (
    ("norm_mean", []), ("norm_std", [0, 0, 0]), ("norm_std", [0.5]), ("norm_mean", ["a", "b", "c"]), ("norm_std", [1e-40] * 3), ("max_slice_nums", HUGE),
    ("scale_resolution", HUGE), ("scale_resolution", 1), ("image_feature_size", HUGE), ("patch_size", 7),
):
    replaced(f"processor-{key}={str(value)[:20]}", "preprocessor_config.json", lambda file, key=key, value=value: json.dumps({**json.loads(file), key: value}))


# ---- files that are none


def special(name: str, kind: str) -> None:
    def change(folder: Path) -> None:
        path = folder / name
        path.unlink()
        {"pipe": lambda: os.mkfifo(path), "device": lambda: path.symlink_to("/dev/zero"), "folder": path.mkdir, "loop": lambda: path.symlink_to(path)}[kind]()

    BROKEN[f"{Path(name).name}-{kind}"] = change


for name in ("config.json", "vocab.json", "tokenizer_config.json", "preprocessor_config.json", "merges.txt", NETWORKS + "config.yaml", NETWORKS + "flow.yaml"):
    short = Path(name).name
    replaced(f"{short}-deep", name, lambda file: "[" * 1000000)
    replaced(f"{short}-garbage", name, lambda file: random.Random(1).randbytes(5000))
    replaced(f"{short}-empty", name, lambda file: b"")
    replaced(f"{short}-utf16", name, lambda file: file.decode().encode("utf-16"))
    replaced(f"{short}-half", name, lambda file: file[: len(file) // 2])
    for kind in ("pipe", "device", "folder"):
        special(name, kind)
for name in (WEIGHTS, FLOW, CAMPPLUS, VOICE):
    for kind in ("pipe", "device", "folder", "loop"):
        special(name, kind)


# ---- the tokenizer


def vocabulary(label: str, change) -> None:
    replaced("vocabulary-" + label, "vocab.json", lambda file: json.dumps(change(json.loads(file))))


for label, value in (("negative", -1), ("2^24", 2**24), ("2^24+1", 2**24 + 1), ("2^62", 2**62), ("text", "5"), ("twice", 5), ("next", 1870)):
    vocabulary(label, lambda words, value=value: {**words, "zzz": value})
vocabulary("no-byte", lambda words: {word: number for word, number in words.items() if word != "Ā"})
replaced("merges-unknown", "merges.txt", lambda file: file + b"qqqqq zzzzz\n")
replaced("merges-one", "merges.txt", lambda file: file + b"qqqqq\n")


def words(label: str, change) -> None:
    def make(file: bytes) -> str:
        whole = json.loads(file)
        change(whole)
        return json.dumps(whole)

    replaced("words-" + label, "tokenizer_config.json", make)


words("bad-ids", lambda c: c.update(bad_token_ids=[10**9, -5]))
words("bad-ids-text", lambda c: c.update(bad_token_ids="x"))
words("eos-unknown", lambda c: c.update(eos_token="nope"))
words("added-none", lambda c: c.update(added_tokens_decoder={}))
words("added-list", lambda c: c.update(added_tokens_decoder=[1]))
words("same-content", lambda c: [token.update(content="x") for token in c["added_tokens_decoder"].values()])
for number, token in (
    ("abc", {"content": "q"}), ("1800", {"content": ""}), ("16777216", {"content": "q", "special": True}), ("99999999999999999999", {"content": "q"}),
    ("1850", {"content": "q" * 5_000_000}),
):
    words(f"added-{number}", lambda c, number=number, token=token: c["added_tokens_decoder"].update({number: token}))
for kind in ("WordPiece", "Unigram", "BPE", "Foo"):
    replaced(f"tokenizer-{kind}", "tokenizer.json", lambda file, kind=kind: json.dumps({"model": {"type": kind, "vocab": {}, "merges": []}, "normalizer": {"type": "NFC"}, "pre_tokenizer": None}))
replaced("tokenizer-list", "tokenizer.json", lambda file: "[]")
replaced("tokenizer-vocabulary-list", "tokenizer.json", lambda file: json.dumps({"model": {"type": "BPE", "vocab": [1, 2], "merges": []}, "normalizer": {"type": "NFC"}}))


# ---- pickles


def archive(records: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as made:
        for name, data in records.items():
            made.writestr(name, data)
    return out.getvalue()


def pickled(label: str, code=None, without: str = "\0", compression: int = zipfile.ZIP_STORED) -> None:
    def make(file: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(file)) as old:
            records = {name: old.read(name) for name in old.namelist() if without not in name}
        if code is not None:
            records = {name: (code(data) if callable(code) else code) if name.endswith("data.pkl") else data for name, data in records.items()}
        return archive(records, compression)

    replaced("pickle-" + label, FLOW, make)


for label, code in (
    ("system", b"\x80\x02cposix\nsystem\nX\x0b\x00\x00\x00touch /tmp/x\x85R."), ("eval", b"\x80\x02c__builtin__\neval\nX\x01\x00\x00\x001\x85R."),
    ("empty", b""), ("dot", b"."), ("list", b"]."), ("marks", b"(" * 3_000_000 + b"."), ("copies", b"]" + b"2" * 100 + b"."),
    ("tuples", b")" + b"\x85" * 2_000_000 + b"."), ("itself", b"}q\x00h\x00h\x00s."), ("nothing-remembered", b"h\x09."),
    ("elsewhere", lambda p: p.replace(b"X\x01\x00\x00\x000", b"X\x0b\x00\x00\x00../../../..x")), ("negative", lambda p: p.replace(b"K\x00", b"J\xff\xff\xff\xff", 3)),
    ("long", b"\x8b\x00\x00\x00\x7f."), ("long-text", b"X\xff\xff\xff\x7fabc."), ("longer-text", b"\x8d" + b"\xff" * 8 + b"abc."),
    ("long-code", b"K\x00" * 20_000_000 + b"."),
):
    pickled(label, code)
pickled("no-data", without="/data/0")
pickled("deflated", compression=zipfile.ZIP_DEFLATED)
for cut in (10, 1000, -30, -2000):
    replaced(f"pickle-cut{cut}", FLOW, lambda file, cut=cut: file[:cut])
replaced("pickle-zeros", FLOW, lambda file: archive({"flow/data.pkl": b"\x00" * 300_000_000, "flow/version": b"3"}, zipfile.ZIP_DEFLATED))


def one_tensor_often(_: bytes, copies: int = 3000, columns: int = 1 << 10, rows: int = 1 << 9) -> bytes:
    def text(of: str) -> bytes:
        return b"X" + struct.pack("<I", len(of)) + of.encode()

    def number(of: int) -> bytes:
        return b"J" + struct.pack("<i", of)

    storage = b"((" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(rows * columns) + b"tQ"
    transposed = storage + b"K\x00(" + number(rows) + number(columns) + b"t(K\x01" + number(rows) + b"t\x89Ntq\x02"
    code = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x01" + transposed + b"h\x01h\x02R" * copies + b"}."
    return archive({"flow/data.pkl": code, "flow/version": b"3\n", "flow/byteorder": b"little", "flow/data/0": bytes(4 * rows * columns)})


replaced("pickle-one-tensor-often", FLOW, one_tensor_often)


# ---- graphs, as protobufs by hand


def varint(number: int) -> bytes:
    out = b""
    while True:
        out += bytes([number & 127 | (128 if number > 127 else 0)])
        number >>= 7
        if not number:
            return out


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def numeric(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value & (2**64 - 1))


def node(operator: str, inputs: list[str], outputs: list[str], **attributes) -> bytes:
    out = b"".join(field(1, x.encode()) for x in inputs) + b"".join(field(2, x.encode()) for x in outputs) + field(3, b"n") + field(4, operator.encode())
    for key, value in attributes.items():
        if isinstance(value, int):
            out += field(5, field(1, key.encode()) + numeric(3, value) + numeric(20, 2))
        else:
            out += field(5, field(1, key.encode()) + b"".join(numeric(8, x) for x in value) + numeric(20, 7))
    return out


def tensor(name: str, shape: list[int], data: bytes, kind: int) -> bytes:
    return b"".join(numeric(1, x) for x in shape) + numeric(2, kind) + field(8, name.encode()) + field(9, data)


def longs(name: str, *values: int) -> bytes:
    return tensor(name, [len(values)], struct.pack(f"<{len(values)}q", *values), 7)


def graph(label: str, nodes: list[bytes], *initializers: bytes) -> None:
    ends = field(11, field(1, b"input")) + field(12, field(1, b"output"))
    data = field(7, b"".join(field(1, n) for n in nodes) + b"".join(field(5, i) for i in initializers) + ends) + field(8, numeric(2, 13))
    replaced("graph-" + label, CAMPPLUS, lambda file: data)


IN, OUT = ["input"], ["output"]
graph("cycle", [node("Relu", ["b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], OUT)])
graph("itself", [node("Relu", OUT, OUT)])
graph("no-nodes", [])
graph("unknown", [node("Foo", IN, OUT)])
graph("not-made", [node("Relu", ["zz"], OUT)])
graph("no-inputs", [node("Relu", [], OUT)])
graph("one-factor", [node("MatMul", IN, OUT)])
for size in (10**11, 3 * 10**9):
    graph(f"constant-{size}", [node("ConstantOfShape", ["s"], OUT)], longs("s", size))
graph("expand-huge", [node("Expand", ["input", "s"], ["x"]), node("Relu", ["x"], OUT)], longs("s", 10**5, 1, 1))
graph("expand-negative", [node("Expand", ["input", "s"], OUT)], longs("s", -5, -1, -1))
graph("transpose-twice", [node("Transpose", IN, OUT, perm=[0, 0, 0])])
graph("transpose-beyond", [node("Transpose", IN, OUT, perm=[0, 1, 9])])
for label, axis, index in (("axis", 99, 5), ("index", 1, 10**12), ("axis-least", -(2**63), 0)):
    graph(f"gather-{label}", [node("Gather", ["input", "s"], OUT, axis=axis)], longs("s", index))
for label, slices in (("back", (2**62, -(2**62), 1, -1)), ("axis", (5, 0, 77, -1)), ("least", (5, 0, 1, -(2**63)))):
    graph(f"slice-{label}", [node("Slice", ["input", "a", "b", "c", "e"], OUT)], *(longs(n, x) for n, x in zip("abce", slices)))
TURN = node("Transpose", IN, ["t"], perm=[0, 2, 1])
for label, attributes in {
    "kernel-0": {"kernel_shape": [0], "strides": [1]}, "stride-0": {"kernel_shape": [3], "strides": [0]}, "negative": {"kernel_shape": [3], "pads": [-100, -100]},
    "huge": {"kernel_shape": [2**40]}, "pads": {"kernel_shape": [3], "pads": [2**33, 2**33]}, "no-kernel": {},
}.items():
    graph(f"pool-{label}", [TURN, node("AveragePool", ["t"], OUT, **attributes)])
for label, attributes in {
    "group-0": {"group": 0}, "group-7": {"group": 7}, "group-negative": {"group": -1}, "stride-0": {"strides": [0]}, "dilation-0": {"dilations": [0]},
    "pads-negative": {"pads": [-5, -5]}, "pads-huge": {"pads": [2**32, 2**32]}, "possible": {},
}.items():
    graph(f"convolution-{label}", [TURN, node("Conv", ["t", "w"], OUT, **attributes)], tensor("w", [4, 80, 3], struct.pack("<960f", *([0.1] * 960)), 1))
graph("pad-huge", [node("Pad", ["input", "p"], OUT)], longs("p", 0, 0, 0, 0, 2**33, 0))
graph("pad-short", [node("Pad", ["input", "p"], OUT)], longs("p", 1))
graph("reshape-negative", [node("Reshape", ["input", "s"], OUT)], longs("s", -1, -1))
graph("reshape-0", [node("Reshape", ["input", "s"], OUT)], longs("s", *[0] * 9))
for label, made in {
    "concat-none": node("Concat", [""], OUT, axis=0), "flatten-99": node("Flatten", IN, OUT, axis=99), "layer-norm": node("LayerNormalization", ["input", "input"], OUT),
    "batch-norm": node("BatchNormalization", IN * 5, OUT), "cast-99": node("Cast", IN, OUT, to=99), "unsqueeze": node("Unsqueeze", IN, OUT, axes=[99]),
    "squeeze": node("Squeeze", IN, OUT, axes=[-99]), "power-of-nothing": node("Pow", ["input", ""], OUT), "where-one": node("Where", IN, OUT),
}.items():
    graph(label, [made])
for label, shape in (("huge", [2**40, 2**40]), ("negative", [-1]), ("zero-huge", [0, 2**62, 2**62])):
    graph(f"shape-{label}", [node("Relu", ["w"], OUT)], tensor("w", shape, b"", 1))
DOUBLE = [node("Concat", [f"x{i}", f"x{i}"], [f"x{i + 1}"], axis=1) for i in range(40)]
graph("doubled-40-times", [node("Identity", IN, ["x0"]), *DOUBLE, node("Identity", ["x40"], OUT)])
for cut in (3, 100, 5000):
    replaced(f"graph-cut{cut}", CAMPPLUS, lambda file, cut=cut: file[:cut])


def flipped(seed: int):
    def make(file: bytes) -> bytes:
        bits, data = random.Random(seed), bytearray(file)
        for _ in range(40):
            data[bits.randrange(len(data) if seed >= 6 else min(len(data), 20000))] = bits.randrange(256)
        return bytes(data)

    return make


for seed in range(12):
    replaced(f"bits-{seed}", (WEIGHTS, FLOW, CAMPPLUS, NETWORKS + "hift.pt", NETWORKS + "speech_tokenizer_v2_25hz.onnx")[seed % 5], flipped(seed))


# ---- the default voice


def voice(label: str, kind=1, channels=1, rate=16000, bits=16, data=bytes(32000), block=None, claimed=None, extension=b"") -> None:
    block = channels * bits // 8 if block is None else block
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * block & 0xFFFFFFFF, block & 0xFFFF, bits) + extension
    size = len(data) if claimed is None else claimed
    file = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", size) + data
    replaced("voice-" + label, VOICE, lambda _: file)


voice("empty", data=b"")
for rate in (0, 1, 2**32 - 1):
    voice(f"rate-{rate}", rate=rate)
voice("no-channels", channels=0)
voice("channels", channels=65535, data=bytes(131070 * 20))
voice("no-bits", bits=0)
voice("a-law", kind=6, bits=8)
voice("not-numbers", kind=3, bits=32, data=b"\x00\x00\xc0\x7f" * 16000)
voice("no-block", block=0)
voice("claims-more", claimed=2**32 - 1)
voice("slow", rate=1000, data=bytes(1000 * 2 * 3600))
voice("extension", kind=0xFFFE, extension=struct.pack("<HHI", 22, 16, 4) + b"\x01\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71")
voice("fast", rate=768000, data=b"\1\0" * 768000 * 2)
voice("prime-rate", rate=15991, data=b"\1\0" * 32000)
voice("prime-rate-too-fast", rate=1999993, data=b"\1\0" * 1999993)


# ---- the vocoder's settings


def setting(name: str, old: str, new: str) -> None:
    replaced(f"vocoder-{new[:28]}", NETWORKS + name, lambda file: file.decode().replace(old, new))


ALIASES = "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
replaced("vocoder-aliases", NETWORKS + "config.yaml", lambda file: ALIASES + file.decode())
for rates in ("[1, 1, 1]", "[65536]", "[]"):
    setting("config.yaml", "upsample_rates: [8, 5, 3]", f"upsample_rates: {rates}")
for old, new in (
    ("n_fft: 16", "n_fft: 0"), ("n_fft: 16", "n_fft: -16"), ("hop_len: 4", "hop_len: 0"), ("sampling_rate: 24000\n  nsf", "sampling_rate: 0\n  nsf"),
    ("lrelu_slope: 0.1", "lrelu_slope: .nan"), ("audio_limit: 0.99", "audio_limit: -1"), ("nsf_sigma: 0.003", "nsf_sigma: 1e38"),
    ("[[1, 3, 5], [1, 3, 5], [1, 3, 5]]", "[[65536]]"),
):
    setting("config.yaml", old, new)
for value in (".inf", "1e300"):
    setting("flow.yaml", "inference_cfg_rate: 0.7", f"inference_cfg_rate: {value}")
