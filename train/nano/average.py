"""The mean of a stage's weights and the shipped ones: of two models trained from the same weights, it often does better than either (Wortsman et al., Model soups, 2022). usage:
python -m nano.average STATE.pt OUT.pt [share of the state, default 0.5] [calls.pt]

OUT.pt is exported in the place of the state. Without a shipped model the state stays as it is. With the state of `train_calls`, half of the LLM is that, and half is STATE's."""
import sys
import torch
from . import shipped
from .run import save

def weights(path):
    return torch.load(path, map_location="cpu")["model"]


def mean(state, share, calls=None):
    """{name: tensor} of `state`, whose LLM, encoder and projector become means."""
    found = shipped.weights("llm.", "apm.", "audio_projection_layer.")

    def averaged(name, value):
        if name not in found:
            return value
        if calls and name.startswith("llm."):
            return (value + calls[name]) / 2
        return found[name] * (1 - share) + value * share

    return {k: averaged(k.removeprefix("nano."), v) for k, v in state.items()}


if __name__ == "__main__":
    source, out, *rest = sys.argv[1:]
    save(out, model=mean(weights(source), float(rest[0]) if rest else .5, weights(rest[1]) if len(rest) > 1 else None))
