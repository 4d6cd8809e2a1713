"""The starting point of a stage that has no state of its own: a shipped checkpoint folder, $NANO_SHIPPED or else models/nano. usage: python -m nano.shipped

The command copies the folder's tokenizer and default voice into the work folder. They must not be made anew: the tensors belong to these tokens.
A folder holds exactly the parts that have been trained, so their presence tells how far it has come. Optimizer states and training-only heads are not shipped."""
import os, pathlib, shutil
from safetensors import safe_open
from .run import work

TOKENIZER = ("vocab.json", "merges.txt", "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json")


def folder():
    return pathlib.Path(os.environ.get("NANO_SHIPPED", pathlib.Path(__file__).parents[2] / "models/nano"))


def weights(*prefixes):
    """{name: float32 tensor} of the shipped tensors below `prefixes`; empty if the folder or one of the parts is
    missing."""
    file, found = folder() / "model.safetensors", {}
    if file.exists():
        with safe_open(str(file), "pt") as tensors:
            names = list(tensors.keys())
            if all(any(n.startswith(p) for n in names) for p in prefixes):
                found = {n: tensors.get_tensor(n).float() for n in names if n.startswith(prefixes)}
    return found


def fitted(found, state):
    """The shipped tensors fitted to the sizes of `state`: of a wider feed-forward layer the neurons with the largest
    weights stay; added encoder layers begin as the identity."""
    found = dict(found)
    for gate in [k for k in found if k.endswith("mlp.gate_proj.weight")]:
        up, down, n = gate.replace("gate", "up"), gate.replace("gate", "down"), len(state[gate])
        if n < len(found[gate]):
            weight = found[gate].norm(dim=1) * found[up].norm(dim=1) * found[down].norm(dim=0)
            best = weight.topk(n).indices.sort().values
            found.update({gate: found[gate][best], up: found[up][best], down: found[down][:, best]})
    if any(k.startswith("apm.") for k in found):
        found.update({k: v * 0 for k, v in state.items() if k.startswith("apm.layers.") and ("out_proj" in k or "fc2" in k) and k not in found})
    return found


def begin(nano, *prefixes):
    """Loads the shipped parts into a model; False if any is missing."""
    found = weights(*prefixes)
    if found:
        nano.load_state_dict(fitted(found, nano.state_dict()), strict=False)
        print("begins with", *prefixes, "of", folder(), flush=True)
    return bool(found)


if __name__ == "__main__":
    if (folder() / "vocab.json").exists() and not (work() / "tokenizer").exists():
        (work() / "tokenizer").mkdir()
        for name in TOKENIZER:
            shutil.copyfile(folder() / name, work() / "tokenizer" / name)
    if (folder() / "assets/default_voice.wav").exists() and not (work() / "default_voice.wav").exists():
        shutil.copyfile(folder() / "assets/default_voice.wav", work() / "default_voice.wav")
