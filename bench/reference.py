"""Compares the reference implementation with Parley in one run, on one thread, with the same checkpoint and input.

    python bench/reference.py --reference DIR --model DIR --bench build/release/stage_bench [--wav F] [--units N] [--rounds N]

DIR of --reference is a checkout of OpenBMB/MiniCPM-o-Demo; its packages (transformers==4.51.0, minicpmo-utils[all]==1.0.7,
Pillow<13, torch==2.13.0, accelerate<1.6, setuptools<81) need their own environment; run this script with its Python. Without a
GPU, delete torchaudio's lib/*.so there: they need CUDA's libraries, and nothing here uses them. It runs in float32, eager, on the CPU.
Both play the same units with greedy text, alternating. A figure is the minimum over all rounds in milliseconds of CPU time, so that
other programs on the machine do not count. A stage that either of them cannot run with the checkpoint is left out.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import types
import wave

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TORCHDYNAMO_DISABLE"] = "1"  # eager throughout

import numpy
import torch

PROMPT = "You are a helpful assistant."
QUESTION = "Tell me a story about a river and a mill."
ANSWER_TOKENS = 96
WARM = 3  # units that are not counted


def let_the_cpu_speak():
    """The vocoder's package asks for a GPU by name; this answers with the CPU. Takes the speech encoder's sizes from
    the file."""
    import s3tokenizer
    import soundfile
    import stepaudio2.token2wav as token2wav
    import torchaudio

    class without_gpu:
        cuda = types.SimpleNamespace(current_device=lambda: 0)
        device = staticmethod(lambda *_: torch.device("cpu"))

        @staticmethod
        def tensor(data, **how):
            return torch.tensor(data, **{**how, "device": "cpu"})

        def __getattr__(self, name):
            return getattr(torch, name)

    def ear_of(path):
        from s3tokenizer.model_v2 import ModelConfig, S3TokenizerV2
        from s3tokenizer.utils import onnx2torch
        weights = onnx2torch(path, None, False)
        width = weights["encoder.blocks.0.attn.query.weight"].shape[0]
        blocks = {name.split(".")[2] for name in weights if name.startswith("encoder.blocks.")}
        ear = S3TokenizerV2("v2", ModelConfig(n_audio_state=width, n_audio_head=width // 64, n_audio_layer=len(blocks)))
        ear.load_state_dict(weights, strict=True)
        return ear

    def read(path, **_):
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        return torch.from_numpy(samples.T.copy()), rate

    token2wav.torch = without_gpu()
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.nn.Module.cuda = lambda self, *_, **__: self
    s3tokenizer.load_model = ear_of
    s3tokenizer.load_audio = lambda path, sr=16000: read(path)[0][0]
    torchaudio.load = read


def staged(reference, model, folder):
    """The checkpoint together with the reference's code, laid out as its loader wants them."""
    code = os.path.join(reference, "MiniCPMO45")
    for name in ("preprocessor_config.json", "tokenizer_config.json"):  # a checkpoint from `parley init-model` does not name the classes
        with open(os.path.join(code, name)) as theirs, open(os.path.join(model, name)) as ours:
            merged = {**json.load(theirs), **json.load(ours)}
        with open(os.path.join(folder, name), "w") as both:
            json.dump(merged, both)
    for source in (model, code):
        for name in os.listdir(source):
            if source == model or name.endswith(".py"):
                target = os.path.join(folder, name)
                if not os.path.exists(target):
                    os.symlink(os.path.join(os.path.abspath(source), name), target)
    return folder


def load(reference, model, speaks):
    sys.path.insert(0, reference)
    module = importlib.import_module("MiniCPMO45.modeling_minicpmo_unified")
    made = module.MiniCPMO.from_pretrained(model, trust_remote_code=True, _attn_implementation="eager").float().eval()
    if not speaks:
        made.init_token2wav = lambda **_: None
    made.init_unified(device="cpu", duplex_config={"generate_audio": speaks, "force_listen_count": 3})
    if speaks:
        fit_buffers(made.tts.audio_tokenizer.flow)
    made.set_mode(module.ProcessorMode.DUPLEX)
    return made


def fit_buffers(flow):
    """The flow's buffers always have the published sizes; fit them to the weights."""
    solver, estimator = flow.decoder, flow.decoder.estimator
    weights = estimator.state_dict()
    depth = len(estimator.blocks)
    head_dim = weights["blocks.0.attn.q_norm.weight"].shape[0]
    heads = weights["blocks.0.attn.to_q.weight"].shape[0] // head_dim
    width = weights["blocks.0.attn.to_q.weight"].shape[1]
    for owner, steps in ((solver, (16,)), (estimator, ())):
        owner.cnn_cache_buffer = torch.zeros(*steps, depth, 2, 2 * width, 2)
        owner.att_cache_buffer = torch.zeros(*steps, depth, 2, heads, 1000, 2 * head_dim)


def play(model, sound, units, voice, voice_file):
    """The milliseconds that each unit spends in each stage."""
    duplex = model.duplex
    model.reset_session()
    torch.manual_seed(1)
    duplex.prepare(prefix_system_prompt=f"<|im_start|>system\n{PROMPT}\n<|audio_start|>",
                   suffix_system_prompt="<|audio_end|><|im_end|>", ref_audio=voice, prompt_wav_path=voice_file)
    rows = []
    for unit in range(units):
        begin = time.process_time()
        heard = duplex.streaming_prefill(audio_waveform=sound[unit * 16000:(unit + 1) * 16000])
        prefilled = time.process_time()
        said = duplex.streaming_generate(decode_mode="greedy", listen_top_k=None)
        duplex.finalize_unit()
        assert heard["success"], heard["reason"]
        rows.append({"unit": (time.process_time() - begin) * 1e3, "prefill": (prefilled - begin) * 1e3, "llm": said["cost_llm"] * 1e3,
                     "tts": (said["cost_tts"] + said["cost_tts_prep"]) * 1e3, "token2wav": said["cost_token2wav"] * 1e3,
                     "listens": said["is_listen"], "tokens": said["n_tokens"], "tts_tokens": said["n_tts_tokens"], "text": said["text"]})
    return rows


def answer(model):
    """Tokens per second of a chat answer. The time includes the prompt."""
    counted = {}
    generate = model.llm.generate

    def counting(*args, **kwargs):
        begin = time.process_time()
        out = generate(*args, **kwargs)
        counted["seconds"] = time.process_time() - begin
        counted["tokens"] = (out.sequences if hasattr(out, "sequences") else out).shape[1]
        return out

    model.llm.generate = counting
    try:
        model.chat(msgs=[{"role": "user", "content": [QUESTION]}], do_sample=False, num_beams=1, max_new_tokens=ANSWER_TOKENS,
                   min_new_tokens=ANSWER_TOKENS, generate_audio=False)
    finally:
        model.llm.generate = generate
    return counted["tokens"] / counted["seconds"]


def decode_ms(model, past, tokens):
    """Milliseconds for one token after `past` others."""
    llm = model.llm
    with torch.inference_mode():
        cache = llm(input_ids=torch.full((1, past), 5), use_cache=True, past_key_values=None).past_key_values
        best = float("inf")
        for _ in range(tokens):
            begin = time.process_time()
            llm(input_ids=torch.full((1, 1), 7), use_cache=True, past_key_values=cache)
            best = min(best, time.process_time() - begin)
    return best * 1e3


def parley(options):
    out = subprocess.run([options.bench, options.model, options.wav, str(options.units)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(out.stdout.splitlines()[-1])  # after the engine's log lines


def least(rounds, kind, stage, each=lambda row: 1):
    """The mean over all units of a kind, or over what `each` counts in them; then the minimum of all rounds."""
    def mean(rows):
        chosen = [row for row in rows[WARM:] if row["listens"] == (kind == "listening")]
        count = sum(each(row) for row in chosen)
        return sum(row[stage] for row in chosen) / count if count else None
    means = [mean(rows) for rows in rounds]
    return None if None in means else min(means)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--bench", default="build/release/stage_bench")
    parser.add_argument("--wav", default="tests/data/question.wav")
    parser.add_argument("--units", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.model = os.path.abspath(options.model)
    torch.set_num_threads(1)
    voice_file = os.path.join(options.model, "assets", "default_voice.wav")
    speaks = os.path.isdir(os.path.join(options.model, "assets", "token2wav"))
    if speaks:
        let_the_cpu_speak()
    with wave.open(options.wav) as file:
        assert file.getframerate() == 16000 and file.getnchannels() == 1
        sound = numpy.frombuffer(file.readframes(file.getnframes()), numpy.int16).astype(numpy.float32) / 32768
    sound = numpy.resize(sound, options.units * 16000)
    voice = None
    if speaks:
        with wave.open(voice_file) as file:
            voice = numpy.frombuffer(file.readframes(file.getnframes()), numpy.int16).astype(numpy.float32) / 32768
    os.environ["LOGLEVEL"] = "ERROR"
    report = sys.stdout
    sys.stdout = sys.stderr  # the reference prints a lot
    folder = tempfile.TemporaryDirectory()
    model = load(options.reference, staged(options.reference, options.model, folder.name), speaks)
    time.time = time.process_time  # the clock with which the reference times its stages
    theirs, ours, their_chat, their_decode = [], [], [], []
    for _ in range(options.rounds):
        ours.append(parley(options))
        with torch.inference_mode():
            theirs.append(play(model, sound, options.units, voice, voice_file if speaks else None))
            their_chat.append(answer(model))
        their_decode.append(decode_ms(model, 128, 12))
    sys.stdout = report
    print("| | reference | Parley | ratio |\n|---|---|---|---|")

    def line(name, theirs, ours, more_is_better=False):
        if theirs and ours:
            ratio = ours / theirs if more_is_better else theirs / ours
            print(f"| {name} | {theirs:.2f} | {ours:.2f} | {ratio:.1f} |")

    our_units = [one["units"] for one in ours]
    for kind in ("listening", "speaking"):
        for stage, name in (("unit", "whole"), ("prefill", "sound and prefill"), ("llm", "text tokens")):
            line(f"{kind} unit, {name}, ms", least(theirs, kind, stage), least(our_units, kind, stage))
    spoken = lambda row: row["tts_tokens"]
    for stage, name in (("tts", "choosing it"), ("token2wav", "its sound")):
        line(f"a speech token, {name}, ms", least(theirs, "speaking", stage, spoken), least(our_units, "speaking", stage, spoken))
    line("one text token behind 128, ms", min(their_decode), min(one["decode_ms"] for one in ours))
    line("chat answer, tokens/s", max(their_chat), max(one["chat_tokens_per_second"] for one in ours), True)
    read = min(one["read_ms"] for one in ours)
    print(f"\nreading the same weights once: {read:.2f} ms; a token takes {min(one['decode_ms'] for one in ours):.2f} ms: "
          f"{100 * read / min(one['decode_ms'] for one in ours):.0f} % of the speed of memory")
    same = [(a["listens"], a["text"]) == (b["listens"], b["text"]) for a, b in zip(theirs[0], our_units[0])]
    print(f"units whose decision and text are the same: {sum(same)} of {len(same)}; "
          f"speech tokens: {sum(r['tts_tokens'] for r in theirs[0])} and {sum(r['tts_tokens'] for r in our_units[0])}")


main()
