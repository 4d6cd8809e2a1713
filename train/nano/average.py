"""The mean of a stage's weights and the shipped ones: of two models trained from the same weights, it often does better than either (Wortsman et al., Model soups, 2022). usage:
python -m nano.average STATE.pt OUT.pt [share of the state, default 0.5]

OUT.pt is exported in the place of the state. Without a shipped model the state stays as it is."""
import sys
import torch
from . import shipped
from .run import save


def mean(state, share):
    """{name: tensor} of `state`, whose LLM, encoder and projector become means."""
    found = shipped.weights("llm.", "apm.", "audio_projection_layer.")
    return {k: v * share + found[k.removeprefix("nano.")] * (1 - share) if k.removeprefix("nano.") in found else v for k, v in state.items()}


if __name__ == "__main__":
    source, out, *rest = sys.argv[1:]
    save(out, model=mean(torch.load(source, map_location="cpu")["model"], float(rest[0]) if rest else .5))
