"""Plots what one second of a session costs when many sessions share an engine.

    build/release/llm_bench --benchmark_filter=engine_units --benchmark_out=scaling.json --benchmark_out_format=json
    python bench/scaling.py scaling.json docs/scaling.svg

Both axes are logarithmic; the dotted lines show the cost per session if they ran one at a time.
"""

import json
import math
import re
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 64, 150, 28, 48
COLOURS = {"0": "#2a6fbb", "1": "#c4512d"}
NAMES = {"0": "listening", "1": "free to speak"}


def read(path):
    """CPU milliseconds of a unit by number of sessions, for each kind of unit."""
    curves = {}
    with open(path) as file:
        for row in json.load(file)["benchmarks"]:
            found = re.match(r"engine_units/sessions:(\d+)/speaks:(\d)", row["name"])
            if not found or row.get("run_type") == "aggregate":
                continue
            scale = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[row["time_unit"]]
            points = curves.setdefault(found[2], {})
            cost = row["cpu_time"] * scale / int(found[1])
            points[int(found[1])] = min(cost, points.get(int(found[1]), cost))
    return curves


def draw(curves):
    sessions = sorted({n for points in curves.values() for n in points})
    costs = [cost for points in curves.values() for cost in points.values()]
    low, high = 10 ** math.floor(math.log10(min(costs))), 10 ** math.ceil(math.log10(max(costs)))
    x = lambda n: LEFT + (WIDTH - LEFT - RIGHT) * math.log(n / sessions[0]) / math.log(sessions[-1] / sessions[0])
    y = lambda ms: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(ms / low) / math.log(high / low)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    for n in sessions:
        out.append(f'<path d="M{x(n):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x(n):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{n}</text>')
    tick = low
    while tick <= high:
        for step in (1, 2, 5):
            if tick * step <= high:
                out.append(f'<path d="M{LEFT} {y(tick * step):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                           f'<text x="{LEFT - 6}" y="{y(tick * step) + 4:.1f}" text-anchor="end">{tick * step:g}</text>')
        tick *= 10
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">sessions in one engine</text>')
    out.append(f'<text x="{LEFT}" y="18">CPU time of one second of one session, ms</text>')
    for kind, points in sorted(curves.items()):
        colour = COLOURS[kind]
        path = " ".join(f"{x(n):.1f},{y(cost):.1f}" for n, cost in sorted(points.items()))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(n):.1f}" cy="{y(cost):.1f}" r="3" fill="{colour}"/>' for n, cost in points.items()]
        one, last = points[sessions[0]], sessions[-1]
        out.append(f'<path d="M{x(sessions[0]):.1f} {y(one):.1f}H{x(last):.1f}" stroke="{colour}" stroke-dasharray="2 4"/>')
        out.append(f'<text x="{x(last) + 8:.1f}" y="{y(points[last]) + 4:.1f}" fill="{colour}">{NAMES[kind]}: 1/{one / points[last]:.1f}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    curves = read(sys.argv[1])
    for kind, points in sorted(curves.items()):
        one = points[min(points)]
        print(NAMES[kind] + ": " + ", ".join(f"{n}: {cost:.2f} ms (1/{one / cost:.1f})" for n, cost in sorted(points.items())))
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            file.write(draw(curves))


main()
