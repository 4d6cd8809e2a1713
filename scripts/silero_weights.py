#!/usr/bin/env python3
"""Writes protocol/speech/silero/weights.bin: the 16 kHz network of the Python package silero-vad 6.2.3 (MIT), as float16, little-endian, in the
order and layout that protocol/speech/silero/network.cpp reads.
  ~/.cache/parley/venv/bin/python scripts/silero_weights.py silero_vad/data/silero_vad.jit"""
import sys
from pathlib import Path

import numpy as np
import torch

OUT = Path(__file__).resolve().parents[1] / "protocol/speech/silero/weights.bin"


def main():
    state = torch.jit.load(sys.argv[1]).state_dict()

    def tensor(name):
        return state["_model." + name].numpy()

    # A window and a Fourier transform, which the program computes itself.
    basis, n = tensor("stft.forward_basis_buffer")[:, 0], np.arange(256)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * n / 256)
    angle = 2 * np.pi * np.outer(np.arange(129), n) / 256
    assert np.abs(basis - np.concatenate([hann * np.cos(angle), -hann * np.sin(angle)])).max() < 1e-4
    parts = []
    for i in range(4):
        parts += [tensor(f"encoder.{i}.reparam_conv.weight").transpose(2, 1, 0), tensor(f"encoder.{i}.reparam_conv.bias")]  # [tap][in][out]
    parts += [tensor("decoder.rnn.weight_ih").T, tensor("decoder.rnn.weight_hh").T, tensor("decoder.rnn.bias_ih") + tensor("decoder.rnn.bias_hh")]
    parts += [tensor("decoder.decoder.2.weight"), tensor("decoder.decoder.2.bias")]
    flat = np.concatenate([part.ravel() for part in parts])
    OUT.write_bytes(flat.astype("<f2").tobytes())
    print(f"{OUT}: {len(flat)} weights")


if __name__ == "__main__":
    main()
