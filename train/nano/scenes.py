"""Turn-taking scenes: who speaks when, and what the model must do in each one-second unit. Times are 10 ms frames, 100 a unit."""
import dataclasses
from .layouts import pieces

QUIET = 40      # frames of silence after a question before the answer may start
CUT_AFTER = 50  # frames of new speech inside a unit after which a running reply is interrupted
FORCED = 3      # units in which the server forces listening


@dataclasses.dataclass
class Scene:
    units: int = 0
    audio: list = dataclasses.field(default_factory=list)  # (start frame, end frame, clip)
    say: dict = dataclasses.field(default_factory=dict)    # unit -> (token ids, last piece of the turn)
    cut: set = dataclasses.field(default_factory=set)      # units in which a reply is interrupted
    first: list = dataclasses.field(default_factory=list)  # unit of each answer's first piece
    frames: dict = dataclasses.field(default_factory=dict) # unit -> its picture


def first_unit_after(end):
    """The first unit that holds QUIET frames after `end`, outside the forced ones."""
    return max(FORCED, -(-(end + QUIET) // 100) - 1)


def make(text, r, turns, late=.5, barge=.15, longest=34, tail=None):
    """turns: [(length in frames, clip, answer)]. Some start late or interrupt the previous reply. Leaves out what does
    not fit."""
    scene = Scene()
    at = r.randrange(0, 2000) if r.random() < late else r.randrange(0, 300)
    for k, (length, clip, answer) in enumerate(turns):
        end = at + length
        unit = first_unit_after(end)
        groups = pieces(text, answer)
        if k and unit + len(groups) > longest:
            break
        for u in [u for u in scene.say if u * 100 + 100 >= at + CUT_AFTER]:  # the answer is still running when this speech is noticed
            del scene.say[u]
            scene.cut.add(u)
        scene.audio.append((at, end, clip))
        scene.first.append(unit)
        for g, group in enumerate(groups):
            scene.say[unit + g] = (group, g == len(groups) - 1)
        last = unit + len(groups)
        scene.units = last
        if len(groups) > 1 and r.random() < barge:
            at = unit * 100 + r.randrange(110, 100 * len(groups) + 60)
        else:
            at = last * 100 + (r.randrange(20, 300) if r.random() < .8 else r.randrange(20, 900))
    scene.units += r.choice([0, 1, 1, 2, 3]) if tail is None else tail
    _keep_first_cut(scene)
    return scene


def _keep_first_cut(scene):
    """Of adjacent interrupted units only the first ends the turn; the others listen."""
    scene.cut = {u for u in scene.cut if u - 1 not in scene.cut and u - 1 in scene.say and not scene.say[u - 1][1]}


def show(scene, r, before, pictures):
    """Adds frames to the session: `before` until some unit ahead of the first question, then the picture of each
    question, changed at the latest in the unit in which the question begins."""
    every, free, current = r.choices([1, 2, 99], [75, 15, 10])[0], 0, before
    changes = {0: before}
    for (start, _, _), first, picture in zip(scene.audio, scene.first, pictures):
        changes[r.randrange(free, start // 100 + 1) if start // 100 >= free else start // 100] = picture
        free = _last(scene, first) + 1
    for u in range(scene.units):
        current = changes.get(u, current)
        if u in changes or u % every == 0:
            scene.frames[u] = current
    return scene


def _last(scene, unit):
    """The last unit of the answer that begins in `unit`."""
    while unit in scene.say and not scene.say[unit][1] and unit + 1 in scene.say:
        unit += 1
    return unit


def silent(r):
    """A session in which nobody speaks to the model."""
    return Scene(units=r.randrange(4, 16))
