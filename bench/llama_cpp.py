"""llama.cpp and Parley on the same weights, the same processor, in turns.

usage: python bench/llama_cpp.py [--rounds N] [--formats int8,int4] [--alone] [--library libllama.so] [--build build/release] [--cache FOLDER] [--json FILE]

The weights are those of `parley init-model --preset mid --seed 1` (28 layers of 1024, random), written as GGUF and quantized by llama.cpp's own
functions. Both decode a token of 1, 4 and 8 sequences with 128 rows each, and read a prompt of 512, with one and two threads. In a round each has a process
of its own, on the same processors, and they take turns of a fraction of a second (a prompt: of one run), case by case: a virtual machine's memory is half as fast
again in one second as in the next, and a processor that was idle for a moment computes a third slower for a while. Of a turn the least of its runs counts; of all turns the median, and the median of the ratios of turns that followed each other.
A plain read of the bytes that Parley reads takes its turns with them. Prints Markdown. `--alone`: Parley and the plain read only.

llama.cpp is xllamacpp's wheel, or `--library`: a libllama.so built for this processor (`cmake -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=ON`), which is faster where the
processor has more than AVX2. PYTHONPATH names the folder of xllamacpp and gguf."""
import argparse
import ctypes
import importlib.util
import json
import os
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

FORMATS = {"float32": ["f32"], "bfloat16": ["bf16"], "int8": ["q8_0"], "int4": ["q4_0", "q4_k"]}  # Parley's and llama.cpp's
# How llama.cpp's quantizer would store the layers' matrices and the head; it gives Q4_K_S's first layers a bit more here and there.
STORED = {"f32": ("F32", "F32"), "bf16": ("BF16", "BF16"), "q8_0": ("Q8_0", "Q8_0"), "q4_0": ("Q4_0", "Q6_K"), "q4_k": ("Q4_K", "Q6_K")}
CASES = {"decode 1": (6, 4), "decode 4": (4, 4), "decode 8": (4, 4), "prefill 512": (2, 1)}  # turns in a round, runs in a turn
LAYER_TENSORS = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
PAST, PROMPT = 128, 512


class Blob(ctypes.Structure):
    """Larger than any struct of parameters: passed and returned in memory, so that what comes after the known fields doesn't matter."""
    _fields_ = [("bytes", ctypes.c_ubyte * 1024)]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p), ("pos", ctypes.POINTER(ctypes.c_int32)),
                ("n_seq_id", ctypes.POINTER(ctypes.c_int32)), ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
keep_quiet = LOG(lambda level, text, _: sys.stderr.buffer.write(text) if level == 4 else None)  # GGML_LOG_LEVEL_ERROR


class Llama:
    """The functions of llama.h that are needed here. Of the structs of parameters only the first four fields of the context's are relied upon."""

    def __init__(self, path):
        lib = self.lib = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        pointer = ctypes.c_void_p
        for name, result, arguments in [
            ("llama_model_default_params", Blob, []), ("llama_context_default_params", Blob, []),
            ("llama_model_load_from_file", pointer, [ctypes.c_char_p, Blob]), ("llama_init_from_model", pointer, [pointer, Blob]),
            ("llama_batch_init", Batch, [ctypes.c_int32] * 3), ("llama_batch_free", None, [Batch]), ("llama_decode", ctypes.c_int32, [pointer, Batch]),
            ("llama_get_memory", pointer, [pointer]), ("llama_memory_clear", None, [pointer, ctypes.c_bool]),
            ("llama_memory_seq_rm", ctypes.c_bool, [pointer] + [ctypes.c_int32] * 3), ("llama_set_n_threads", None, [pointer, ctypes.c_int32, ctypes.c_int32]),
            ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [pointer, ctypes.c_int32]), ("llama_free", None, [pointer]),
            ("llama_print_system_info", ctypes.c_char_p, []), ("llama_log_set", None, [LOG, pointer]),
        ]:
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        lib.llama_log_set(keep_quiet, None)
        lib.llama_backend_init()

    def quantize(self, numbers, name):
        """float32 [rows, columns] -> uint8 [rows, bytes], by the quantizer of the type with this name."""
        import gguf
        import numpy as np
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
        numbers, result = np.ascontiguousarray(numbers), np.empty((numbers.shape[0], numbers.shape[1] // block * size), np.uint8)
        getattr(self.lib, f"quantize_row_{name.replace('Q', 'q')}_ref")(ctypes.c_void_p(numbers.ctypes.data), ctypes.c_void_p(result.ctypes.data), ctypes.c_int64(numbers.size))
        return result

    def load(self, path):
        self.model = self.lib.llama_model_load_from_file(str(path).encode(), self.lib.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"llama.cpp could not load {path}")

    def open(self, sequences, rows, threads):
        """A context with room for so many rows of each sequence."""
        params = self.lib.llama_context_default_params()
        struct.pack_into("<IIII", params.bytes, 0, sequences * rows, PROMPT, PROMPT, sequences)  # n_ctx, n_batch, n_ubatch, n_seq_max
        context = self.lib.llama_init_from_model(self.model, params)
        if not context:
            raise SystemExit("llama.cpp could not make a context")
        self.lib.llama_set_n_threads(context, threads, threads)
        return context

    def batch(self, rows):
        """rows: (token, position, sequence, whether its logits are wanted)."""
        made = self.lib.llama_batch_init(len(rows), 0, 1)
        made.n_tokens = len(rows)
        for i, (token, position, sequence, wanted) in enumerate(rows):
            made.token[i], made.pos[i], made.n_seq_id[i], made.logits[i] = token, position, 1, wanted
            made.seq_id[i][0] = sequence
        return made

    def decode(self, context, batch):
        if self.lib.llama_decode(context, batch) != 0:
            raise SystemExit("llama_decode failed")
        return self.lib.llama_get_logits_ith(context, -1)[0]  # waits for the result


def least(runs, work, after):
    """(wall, CPU) milliseconds, the least of several runs of `work`, as in quant_bench.cpp."""
    walls, cpus = [], []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        after()
    return min(walls) * 1e3, min(cpus) * 1e3


def measure_on_demand(library, path):
    """llama.cpp's side: answers lines as quant_bench does."""
    llama = Llama(library)
    llama.load(path)
    contexts = {}
    for line in sys.stdin:
        count, runs, what, n = line.split()
        count, runs, n = int(count), int(runs), int(n)
        if (what, n) not in contexts:
            contexts[what, n] = llama.open(n, 2 * PAST, count) if what == "decode" else llama.open(1, n, count)
            for s in range(n if what == "decode" else 0):
                llama.decode(contexts[what, n], llama.batch([(5, i, s, i == PAST - 1) for i in range(PAST)]))
        context = contexts[what, n]
        llama.lib.llama_set_n_threads(context, count, count)
        memory = llama.lib.llama_get_memory(context)
        if what == "decode":
            step = llama.batch([(7, PAST, s, True) for s in range(n)])
            cost = least(runs, lambda: llama.decode(context, step), lambda: [llama.lib.llama_memory_seq_rm(memory, s, PAST, -1) for s in range(n)])
        else:
            step = llama.batch([(5, i, 0, i == n - 1) for i in range(n)])
            cost = least(runs, lambda: llama.decode(context, step), lambda: llama.lib.llama_memory_clear(memory, False))
        llama.lib.llama_batch_free(step)
        print(json.dumps({"wall_ms": cost[0], "cpu_ms": cost[1]}), flush=True)


def write_gguf(llama, checkpoint, target, matrices, head):
    """The language model of a checkpoint's folder in these types, with a vocabulary of made-up words."""
    import gguf
    import numpy as np
    config = json.loads((checkpoint / "config.json").read_text())
    file = np.memmap(checkpoint / "model.safetensors", np.uint8, "r")
    size = int(file[:8].view("<u8")[0])
    header = {name: at for name, at in json.loads(bytes(file[8:8 + size])).items() if name.startswith("llm.")}

    def numbers(name):
        at = header["llm." + name]
        begin, end = at["data_offsets"]
        narrow = file[8 + size + begin:8 + size + end].view("<u2")  # bfloat16
        return (narrow.astype("<u4") << 16).view("<f4").reshape(at["shape"])

    def add(name, stored, kind):
        values = numbers(f"{stored}.weight")
        if values.ndim == 1 or kind == "F32":
            out.add_tensor(f"{name}.weight", values)
        elif kind == "BF16":
            out.add_tensor(f"{name}.weight", (values.view("<u4") >> 16).astype("<u2").view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            out.add_tensor(f"{name}.weight", llama.quantize(values, kind), raw_dtype=gguf.GGMLQuantizationType[kind])

    words = header["llm.lm_head.weight"]["shape"][0]
    out = gguf.GGUFWriter(target, "qwen3")
    out.add_block_count(config["num_hidden_layers"])
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(config["num_attention_heads"])
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_key_length(config["head_dim"])
    out.add_value_length(config["head_dim"])
    out.add_rope_freq_base(config["rope_theta"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("qwen2")
    out.add_token_list([f"word{i}" for i in range(words)])
    out.add_token_types([1] * words)
    out.add_token_merges(["w o"])
    out.add_eos_token_id(0)
    add("token_embd", "model.embed_tokens", matrices)
    add("output_norm", "model.norm", "F32")
    add("output", "lm_head", head)
    for i in range(config["num_hidden_layers"]):
        for stored, name in LAYER_TENSORS.items():
            add(f"blk.{i}.{name}", f"model.layers.{i}.{stored}", matrices)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def prepare(library, build, cache):
    """The checkpoint and, for llama.cpp, the GGUFs, unless they are there."""
    cache.mkdir(parents=True, exist_ok=True)
    checkpoint = cache / "mid"
    if not (checkpoint / "config.json").exists():
        subprocess.run([build / "parley", "init-model", "--preset", "mid", "--seed", "1", "--out", checkpoint], check=True)
    for name, types in STORED.items() if library else []:
        if not (cache / f"{name}.gguf").exists():
            write_gguf(Llama(library), checkpoint, cache / "part", *types)
            (cache / "part").rename(cache / f"{name}.gguf")
    for path in [checkpoint / "model.safetensors", *cache.glob("*.gguf")]:
        forget(path)
    return checkpoint


def forget(path):
    """Drops a file from the page cache. What was just written lies there in small pages, what is read back in large ones, as after a restart: 10 % of a token's time."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Process:
    """One side's process, which measures when it is told to."""

    def __init__(self, command):
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, threads, runs, case):
        """(wall, CPU) milliseconds."""
        print(threads, runs, case, file=self.process.stdin, flush=True)
        line = json.loads(self.process.stdout.readline())
        return line["wall_ms"], line["cpu_ms"]

    def end(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise SystemExit(f"{self.process.args[0]} failed")


def take_turns(sides, width, turns):
    """Adds to turns[Parley's format, who, case, width] the costs of each side, the first of which is Parley's. The first turn of each only makes what the case needs."""
    parley = next(iter(sides))
    for case, (count, runs) in CASES.items():
        runners = [(name, name, case) for name in sides]
        if case == "decode 1":
            runners += [("weights", parley, "read 0"), ("all", parley, "read 1")]
        for _, side, what in runners:
            sides[side].measure(width, 1, what)
        for i in range(count):
            for name, side, what in runners[i % len(runners):] + runners[:i % len(runners)]:  # nobody always comes first
                turns.setdefault((parley, name, case, width), []).append(sides[side].measure(width, runs, what))


def table(turns, formats, threads):
    """turns: {(Parley's format, who, case, threads): [(wall, CPU), …]}; who is that format, one of llama.cpp's or a plain read."""
    def median(*key):
        return tuple(statistics.median(one[i] for one in turns[key]) for i in range(2))

    def ratio(ours, other, case, count):
        return tuple(statistics.median(b[i] / a[i] for a, b in zip(turns[ours, ours, case, count], turns[ours, other, case, count])) for i in range(2))

    def have(ours, other):
        return any(key[:2] == (ours, other) for key in turns)

    behind = cells = 0
    lines = []
    for ours in formats:
        for other in FORMATS[ours] if have(ours, FORMATS[ours][0]) else []:
            for count in threads:
                for case in CASES:
                    a, b, times = median(ours, ours, case, count), median(ours, other, case, count), ratio(ours, other, case, count)
                    behind, cells = behind + (times[0] < 1), cells + 1
                    lines.append(f"| {ours}, {other.upper()} | {count} | {case} | {a[0]:.1f} / {a[1]:.1f} | {b[0]:.1f} / {b[1]:.1f} | {times[0]:.2f} / {times[1]:.2f} |")
    if cells:
        print("| Parley, llama.cpp | threads | case | Parley, ms: wall / CPU | llama.cpp, ms: wall / CPU | llama.cpp / Parley: wall / CPU |\n|---|---|---|---|---|---|")
        print(*lines, sep="\n")
        print(f"\nParley is behind in {behind} of {cells} cells.\n")
    print("| Parley | threads | a token, ms | a plain read of the weights, ms | of its speed | of weights, keys and values | of its speed |\n|---|---|---|---|---|---|---|")
    for ours in formats:
        for count in threads:
            token, weights, all_bytes = (median(ours, who, "decode 1", count)[0] for who in (ours, "weights", "all"))
            shares = [ratio(ours, who, "decode 1", count)[0] for who in ("weights", "all")]
            print(f"| {ours} | {count} | {token:.1f} | {weights:.1f} | {shares[0]:.0%} | {all_bytes:.1f} | {shares[1]:.0%} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--library", type=Path)
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--cache", type=Path, default=Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "parley" / "llama_cpp")
    parser.add_argument("--json", type=Path, help="file for all turns")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)  # one turn of llama.cpp, of this GGUF
    args = parser.parse_args()
    library = args.library
    if not args.alone:
        found = {name: importlib.util.find_spec(name) for name in ("xllamacpp", "gguf")}
        if not found["gguf"] or not (args.library or found["xllamacpp"]):
            raise SystemExit("needs llama.cpp: python -m pip install -t FOLDER xllamacpp gguf, then PYTHONPATH=FOLDER")
        library = args.library or next(Path(found["xllamacpp"].origin).parent.glob("*.so"))
    if args.measure:
        return measure_on_demand(library, args.measure)
    processors = sorted(os.sched_getaffinity(0))
    checkpoint = prepare(library, args.build, args.cache)
    threads, chosen, turns = [int(count) for count in args.threads.split(",")], args.formats.split(","), {}
    for done in range(args.rounds):
        for ours in chosen:
            for width in threads:
                os.sched_setaffinity(0, processors[:width])  # of the processes too, which therefore leave no processor idle between their turns
                sides = {ours: Process([args.build / "quant_bench", checkpoint, ours, "-"])}
                for theirs in [] if args.alone else FORMATS[ours]:
                    sides[theirs] = Process([sys.executable, __file__, "--measure", args.cache / f"{theirs}.gguf", "--library", library])
                take_turns(sides, width, turns)
                for side in sides.values():
                    side.end()
        print(f"{done + 1} of {args.rounds} rounds, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        if args.json:
            args.json.write_text(json.dumps([[*key, costs] for key, costs in turns.items()]))
    if library:
        print(f"llama.cpp: {library.name}, {Llama(library).lib.llama_print_system_info().decode().strip()}\n")
    table(turns, chosen, threads)


if __name__ == "__main__":
    main()
