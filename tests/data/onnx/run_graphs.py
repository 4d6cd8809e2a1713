#!/usr/bin/env python3
"""Runs what make_graphs.py made on random inputs and adds the outputs to results.safetensors, under names that end in the version.

usage: run_graphs.py FOLDER     needs numpy and onnxruntime; stored are the outputs of 1.20.1 and 1.32.0, which agree
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

NAMES = {np.dtype(np.float32): "F32", np.dtype(np.int32): "I32", np.dtype(np.int8): "I8"}


def read(file: Path) -> dict[str, np.ndarray]:
    if not file.exists():
        return {}
    data = file.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    types = {name: dtype for dtype, name in NAMES.items()}
    return {
        name: np.frombuffer(data[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]], types[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in json.loads(data[8:begin]).items()
    }


def write(file: Path, tensors: dict[str, np.ndarray]) -> None:
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": tensor.shape, "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(t.tobytes() for t in tensors.values()))


def main() -> None:
    folder = Path(sys.argv[1])
    file, version = folder / "results.safetensors", onnxruntime.__version__
    chance = np.random.default_rng(7)
    inputs = {"speaker.input": chance.integers(-127, 128, (500, 80), np.int8), "tokenizer.input": chance.integers(-127, 128, (128, 301), np.int8)}
    results = read(file) | inputs
    speaker = onnxruntime.InferenceSession(str(folder / "campplus.onnx"))
    tokenizer = onnxruntime.InferenceSession(str(folder / "speech_tokenizer_v2_25hz.onnx"))
    sound, mel = (inputs[f"{name}.input"].astype(np.float32)[None] / 64 for name in ("speaker", "tokenizer"))
    for frames in (150, 200, 345, 500):
        results[f"speaker.{frames}.{version}"] = speaker.run(None, {"input": sound[:, :frames]})[0][0]
    for frames in (100, 301):
        results[f"tokenizer.{frames}.{version}"] = tokenizer.run(None, {"input": mel[:, :, :frames]})[0][0]
    write(file, dict(sorted(results.items(), key=lambda item: item[1].dtype.itemsize, reverse=True)))
    print(version, {name: tensor.shape for name, tensor in results.items()})


if __name__ == "__main__":
    main()
