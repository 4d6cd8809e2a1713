"""Draws spectrograms with pitch of held-out sentences, as espeak-ng reads them and as the nano model says them. usage:
python -m nano.spectrogram OUT.svg [sentences]"""
import base64, struct, sys, zlib
import numpy as np
import torch
from .espeak import read
from .pitch import pitches
from .speak import stages
from .voice import HOP, PITCH, RANGE, RATE, VOICE

STEP, WINDOW, BINS = 240, 600, 112  # in samples; and the number of 40 Hz bins in the picture
TOP = 360                           # Hz at the upper edge of the pitch scale
WIDE, HIGH = 240, 150               # pixels per second, and height of a spectrogram


def png(grey):
    """[rows, columns] uint8 -> an image file."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = np.pad(grey, ((0, 0), (1, 0))).tobytes()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def spectrogram(y):
    """float32 samples at 24 kHz -> image: 60 dB from white to black, 0 to 4.5 kHz."""
    s = torch.stft(torch.from_numpy(y), WINDOW, STEP, window=torch.hann_window(WINDOW), return_complex=True).abs()[:BINS]
    level = 20 * (s / s.max()).clamp(min=1e-5).log10()
    return (-level.clamp(min=-60).flip(0) / 60 * 15).round().mul(17).to(torch.uint8).numpy()


def panel(y, title, top):
    """SVG of one recording at a given height in the picture; the pitch is a line with its own scale."""
    width, found = len(y) / RATE * WIDE, pitches(torch.from_numpy(np.clip(y, -1, 1) * 32767).to(torch.int16), 60, TOP).numpy()
    image = base64.b64encode(png(spectrogram(y))).decode()
    parts = [f'<text x="48" y="{top + 12}">{title}</text>',
             f'<image x="48" y="{top + 18}" width="{width:.0f}" height="{HIGH}" preserveAspectRatio="none" href="data:image/png;base64,{image}"/>']
    at = lambda hz: top + 18 + HIGH * (1 - hz / TOP)
    parts += [f'<text x="14" y="{at(hz) + 4:.0f}" fill="#d1242f">{hz} Hz</text>' for hz in (100, 200, 300)]
    line = []
    for k, hz in enumerate([*found, 0]):
        if hz:
            line.append(f"{48 + (k + .5) * HOP / RATE * WIDE:.1f},{at(hz):.1f}")
        elif line:
            parts.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="#d1242f" stroke-width="2"/>')
            line = []
    return "\n".join(parts)


@torch.no_grad()
def main(path, n):
    torch.set_num_threads(1)
    rows, data, chosen = stages(200)
    chosen = sorted(chosen, key=lambda i: abs(data["length"][i] - 62))[:n]
    name = list(rows)[-1]
    parts, top, widest = [], 10, 0
    for i in chosen:
        text = data["questions"][i][1]
        torch.manual_seed(1)
        for y, title in ((read(text, VOICE, 170, PITCH, RANGE)[0], f"espeak-ng: {text}"), (rows[name](i), f"nano ({name}): {text}")):
            parts.append(panel(y, title, top))
            top, widest = top + HIGH + 34, max(widest, len(y) / RATE * WIDE)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{widest + 60:.0f}" height="{top}" font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
    foot = f'<text x="48" y="{top - 6}">0 to 4.5 kHz, 60 dB; red: pitch</text>\n</svg>\n'
    open(path, "w").write(head + "\n".join(parts) + "\n" + foot)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2)
