"""Pictures of coloured shapes, drawn with numpy, and their patches as the engine cuts them. Every picture has about
SIDE x SIDE pixels, whatever its aspect ratio."""
import functools, math
import numpy as np
import torch
from . import sights

SIDE, PATCH = 168, 14
# Red, green, blue in 0 … 1. `shade` defines how far a colour may stray from these.
CENTRES = dict(red=(.86, .1, .1), green=(.12, .62, .16), blue=(.12, .22, .88), yellow=(.96, .88, .1), orange=(.98, .52, .05), purple=(.5, .1, .62), pink=(.98, .52, .72),
               black=(.05, .05, .05), white=(.97, .97, .97), brown=(.45, .26, .1), gray=(.5, .5, .5))
FORMS = [(SIDE, SIDE), (196, 140), (140, 196), (224, 126)]  # width, height: 1:1, 4:3, 3:4, 16:9


def shade(g, name):
    """A random shade of the named colour."""
    c = np.array(CENTRES[name])
    grey = name in ("black", "white", "gray")
    c = c * g.uniform(.93, 1.05) if not grey else c + g.uniform(-.05, .05)
    return np.clip(c + g.uniform(-.035, .035, 3) * (.4 if grey else 1), 0, 1)


def inside(shape, x, y):
    """Which points (x, y, down) of the square -1 … 1 belong to the shape."""
    r, angle = np.hypot(x, y), np.arctan2(x, -y)
    if shape == "circle":
        return r < 1
    if shape == "square":
        return np.maximum(abs(x), abs(y)) < .88
    if shape == "triangle":
        return (y < .75) & (abs(x) < (y + 1) * .58)
    if shape == "star":
        turn = (angle + math.pi / 5) % (2 * math.pi / 5) - math.pi / 5  # angle to the nearest point of the star, -36 … 36 degrees
        nx, ny = .4 * math.sin(math.pi / 5), .4 * math.cos(math.pi / 5) - 1  # the edge from the point to the notch, which is 36 degrees further at a radius of 0.4
        px, py = r * np.sin(abs(turn)), r * np.cos(turn) - 1
        return px * ny - py * nx > 0
    if shape == "cross":
        return (np.minimum(abs(x), abs(y)) < .3) & (np.maximum(abs(x), abs(y)) < .98)
    if shape == "heart":
        u, v = x * 1.2, -y * 1.2 + .25
        return (u * u + v * v - 1) ** 3 - u * u * v ** 3 < 0
    if shape == "diamond":
        return abs(x) * 1.45 + abs(y) < 1
    return (r < 1) & (r > .58)  # a ring


@functools.cache
def grid(height, width, step=1):
    """Row and column of every pixel, or of every sub-pixel if `step` is below 1."""
    y, x = np.mgrid[:round(height / step), :round(width / step)]
    return (y * step + step / 2).astype(np.float32), (x * step + step / 2).astype(np.float32)


def ground(g, width, height, avoid):
    """A background that contrasts with the colour `avoid` (an RGB triple): plain, shaded, spotted or striped.
    [height,width,3]"""
    while True:
        base = g.uniform(0, 1, 3) if g.random() < .15 else np.full(3, g.choice([.02, .1, .25, .5, .75, .9, .98, 1])) + g.uniform(-.04, .04, 3)
        if np.abs(base - avoid).max() > .3 and np.abs(base - avoid).sum() > .45:
            break
    picture = np.broadcast_to(base.astype(np.float32), (height, width, 3)).copy()
    y, x = (v / max(width, height) for v in grid(height, width))
    kind = g.random()
    if kind < .25:
        a = g.uniform(0, 2 * math.pi)
        picture += ((x - .5) * math.cos(a) + (y - .5) * math.sin(a))[..., None] * g.uniform(-.22, .22, 3).astype(np.float32)
    elif kind < .4:
        coarse = g.uniform(-1, 1, (8, 8)) * g.uniform(.01, .06)
        picture += coarse.repeat(-(-height // 8), 0).repeat(-(-width // 8), 1)[:height, :width, None]
    elif kind < .5:
        picture += (np.sin((x * math.cos(kind * 60) + y * math.sin(kind * 60)) * g.uniform(15, 60)) * g.uniform(.01, .05))[..., None]
    return picture


def spots(g, sight, width, height):
    """Centres and radii (pixels) of the shapes: a single one at its place, several apart from each other."""
    short = min(width, height)
    if sight.number == 1:
        radius = short * (g.uniform(.14, .3) if (sight.down, sight.across) != ("middle", "middle") else g.uniform(.14, .42))
        third = dict(top=0, left=0, middle=1, bottom=2, right=2)

        def along(place, size):
            low, high = third[place] * size / 3, (third[place] + 1) * size / 3
            low, high = max(low + size * .035, radius), min(high - size * .035, size - radius)
            return g.uniform(low, high) if low < high else (low + high) / 2

        return [(along(sight.across, width), along(sight.down, height), radius)]
    for _ in range(1000):
        radius, found = short * g.uniform(.12, .17 if sight.number > 3 else .22), []
        for _ in range(60):
            if len(found) == sight.number:
                return found
            x, y, r = g.uniform(radius, width - radius), g.uniform(radius, height - radius), radius * g.uniform(.8, 1)
            if all(math.hypot(x - a, y - b) > (r + c) * 1.12 for a, b, c in found):
                found.append((x, y, r))
    raise AssertionError("no room")


def something_else(g, width, height):
    """No shapes of the list: strokes like writing, clouds of colour, patches, a landscape, grain. [height,width,3] in 0 … 1"""
    y, x = (v / max(width, height) for v in grid(height, width))
    picture, kind = np.ones((height, width, 3), np.float32) * g.uniform(0, 1, 3).astype(np.float32), g.integers(5)
    if kind == 0:  # lines of strokes
        ink, step = g.uniform(0, 1, 3), int(g.integers(8, 20))
        for top in range(4, height - step, step):
            at = 4
            while at < width * g.uniform(.6, 1) - 4:
                wide = int(g.integers(1, 9))
                picture[top + g.integers(0, step // 3 + 1):top + step // 2 + 1, at:at + wide] = ink
                at += wide + int(g.integers(1, 6))
    elif kind == 1:  # clouds
        for _ in range(int(g.integers(4, 12))):
            reach = np.exp(-((x - g.uniform()) ** 2 + (y - g.uniform()) ** 2) / g.uniform(.005, .12))
            picture += reach[..., None] * g.uniform(-.8, .8, 3).astype(np.float32)
    elif kind == 2:  # many patches
        n = int(g.integers(3, 14))
        coarse = g.uniform(0, 1, (n, n, 3)).astype(np.float32)
        picture = coarse.repeat(-(-height // n), 0).repeat(-(-width // n), 1)[:height, :width]
    elif kind == 3:  # sky, hills and trunks
        for k in range(3):
            edge = .25 + .2 * k + .08 * np.sin(x * g.uniform(4, 20) + g.uniform(0, 6))
            picture = np.where((y > edge)[..., None], g.uniform(0, 1, 3).astype(np.float32), picture)
        for _ in range(int(g.integers(0, 9))):
            left, top = int(g.integers(0, width - 6)), int(g.integers(0, height // 2))
            picture[top:, left:left + int(g.integers(2, 12))] = g.uniform(0, 1, 3)
    else:
        picture = picture + g.uniform(-.6, .6, (height, width, 1)).astype(np.float32)
    return picture + np.sin(x * g.uniform(0, 60) + y * g.uniform(0, 60))[..., None] * np.float32(g.uniform(0, .1))


def draw(g, sight, width=SIDE, height=SIDE, plain=False):
    """uint8 [height,width,3]. plain: without noise, like a computer drawing."""
    return draw_masked(g, sight, width, height, plain)[0]


def draw_masked(g, sight, width, height, plain=False):
    """The picture, and how much of each patch a shape covers [rows,columns]."""
    mask = np.zeros((height // PATCH, width // PATCH), np.float32)
    colour = shade(g, sight.colour)
    picture = ground(g, width, height, colour)
    if sight.number == sights.OTHER:
        picture = something_else(g, width, height)
    if sight.number > 0:
        y, x = grid(height, width, .5)  # double resolution, for soft edges
        covered = np.zeros((height * 2, width * 2), np.float32)
        for cx, cy, radius in spots(g, sight, width, height):
            tilt = math.radians(g.uniform(-10, 10) if sight.shape not in ("circle", "ring") else 0)
            left, right, top, bottom = (int(np.clip(v * 2, 0, m)) for v, m in ((cx - 1.5 * radius, width * 2), (cx + 1.5 * radius + 1, width * 2), (cy - 1.5 * radius, height * 2), (cy + 1.5 * radius + 1, height * 2)))
            px, py = (x[top:bottom, left:right] - cx) / radius, (y[top:bottom, left:right] - cy) / radius
            u, v = px * math.cos(tilt) + py * math.sin(tilt), py * math.cos(tilt) - px * math.sin(tilt)
            covered[top:bottom, left:right] = np.maximum(covered[top:bottom, left:right], inside(sight.shape, u, v))
        alpha = covered.reshape(height, 2, width, 2).mean((1, 3))[..., None]
        mask = alpha[:height // PATCH * PATCH, :width // PATCH * PATCH].reshape(height // PATCH, PATCH, width // PATCH, PATCH).mean((1, 3))
        fill = (colour + (np.arange(height)[:, None, None] / height - .5) * (g.uniform(-.08, .08) if g.random() < .3 else 0)).astype(np.float32)
        picture = picture * (1 - alpha) + fill * alpha
    if not plain:
        if g.random() < .3:
            soft = (picture[:-2] + 2 * picture[1:-1] + picture[2:]) / 4
            picture[1:-1] = soft
            picture[:, 1:-1] = (picture[:, :-2] + 2 * picture[:, 1:-1] + picture[:, 2:]) / 4
        if g.random() < .5:
            picture = picture + g.standard_normal(picture.shape, np.float32) * np.float32(g.uniform(0, .03))
        if g.random() < .3:  # imitates the 8 x 8 block edges of strong compression
            h, w = height // 7 * 7, width // 7 * 7
            blocks = picture[:h, :w].reshape(h // 7, 7, w // 7, 7, 3)
            keep = g.uniform(.6, 1)
            picture[:h, :w] = (blocks * keep + blocks.mean((1, 3), keepdims=True) * (1 - keep)).reshape(h, w, 3)
        picture = (picture - .5) * g.uniform(.85, 1.05) + .5 + g.uniform(-.04, .04)
    return np.clip(picture * 255 + .5, 0, 255).astype(np.uint8), mask


def patches(picture):
    """uint8 [h,w,3], sides multiples of PATCH -> (float [rows*columns,3*PATCH*PATCH] in -1 … 1, rows, columns)."""
    h, w = picture.shape[0] // PATCH, picture.shape[1] // PATCH
    x = torch.from_numpy(picture).float().div(255).sub(.5).div(.5).view(h, PATCH, w, PATCH, 3)
    return x.permute(0, 2, 4, 1, 3).reshape(h * w, 3 * PATCH * PATCH), h, w
