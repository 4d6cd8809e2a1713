"""Loss curves as SVG from the jsonl logs. usage: python -m nano.curves OUT_FOLDER"""
import json, math, pathlib, sys
from .run import work

COLOURS = "#1f6feb #d1242f #1a7f37 #9a6700 #8250df #57606a".split()


def read(name):
    """{key: [(seconds, value)]} of one log; a resumed run continues the same curve."""
    series = {}
    for line in (work() / f"{name}.jsonl").read_text().splitlines():
        row = json.loads(line)
        for key, value in row.items():
            if "s" in row and value is not None and key not in ("s", "step", "tok_s", "units_s", "codes"):
                series.setdefault(key, []).append((row["s"], max(value, 1e-3)))
    return series


def svg(title, series, width=640, height=320, left=48, bottom=36):
    """Plots lines over seconds of training, with logarithmic values."""
    points = [p for line in series.values() for p in line]
    t1, low, high = max(t for t, _ in points), math.log10(min(v for _, v in points)), math.log10(max(v for _, v in points))
    x = lambda t: left + t / t1 * (width - left - 130)
    y = lambda v: 24 + (high - math.log10(v)) / max(high - low, 1e-9) * (height - 24 - bottom)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{left}" y="14" font-size="13">{title}</text>']
    for e in range(math.floor(low), math.ceil(high) + 1):
        if low <= e <= high:
            parts.append(f'<line x1="{left}" x2="{width - 130}" y1="{y(10 ** e):.1f}" y2="{y(10 ** e):.1f}" stroke="#ddd"/><text x="4" y="{y(10 ** e) + 4:.1f}">{10 ** e:g}</text>')
    for k in range(5):
        parts.append(f'<text x="{x(t1 * k / 4) - 12:.1f}" y="{height - 16}">{t1 * k / 240:.0f} min</text>')
    for n, (key, line) in enumerate(series.items()):
        path = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[n % 6]}" stroke-width="1.5"/><text x="{width - 124}" y="{40 + 16 * n}" fill="{COLOURS[n % 6]}">{key}</text>')
    return "\n".join(parts + ["</svg>\n"])


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    out.mkdir(exist_ok=True)
    for name, title in (("text", "Stage 1: text (loss per target token)"), ("phones", "Stage 2a: encoder, phonemes (CTC loss per symbol)"), ("ctc", "Stage 2b: encoder, phonemes and tokens"), ("tower", "Stage 2c: tower and resampler (right answers as shares)"), ("joint", "Stage 3: joint"),
                        ("tokens", "Stage 4: speech tokenizer and flow encoder"), ("encoder", "Stage 4, flow encoder alone"), ("flow", "Stage 5: flow"), ("vocoder", "Stage 6: vocoder"), ("talker", "Stage 7: talker")):
        if (work() / f"{name}.jsonl").exists():
            (out / f"{name}.svg").write_text(svg(title, read(name)))
