"""Loads the voice of a shipped checkpoint folder into training states: the inverse of `nano.export_speech`. Every
function returns None if the folder has no voice."""
import torch
from . import speech
from .export_speech import places
from .onnx_weights import arrays
from .run import newest
from .shipped import folder, weights
from .talker import SURE, Talker


def _file(name):
    path = folder() / "assets/token2wav" / name
    return path if path.exists() else None


def tokenizer():
    path = _file("speech_tokenizer_v2_25hz.onnx")
    if path is None:
        return None
    data = path.read_bytes()
    where = places(data)
    found = arrays(data, where)
    return {name: torch.from_numpy(found[i].T.copy() if turned else found[i].copy()) for i, (name, turned) in where.items()}


def flow():
    """The file holds the embedding of every code. The linear map of the digits is derived from the codes with a single
    digit."""
    path = _file("flow.pt")
    if path is None:
        return None
    state = {k: v.float() for k, v in torch.load(path, map_location="cpu").items()}
    table, zero = state.pop("input_embedding.weight"), (3 ** speech.DIGITS - 1) // 2
    up = torch.stack([table[zero + 3 ** k] for k in range(speech.DIGITS)])
    state = {k: v for k, v in state.items() if not k.startswith("spk_embed")}
    return dict(state, **{"digit_map.weight": (up - table[zero]).T.contiguous(), "digit_map.bias": table[zero]})


def codec():
    """(speech tokenizer, flow) as far as they are trained: of flow.pt or codec.pt, or else the shipped ones; None if there are none."""
    path = newest("flow.pt", "codec.pt")
    state = torch.load(path, map_location="cpu") if path else dict(tokenizer=tokenizer(), flow=flow())
    if state["flow"] is None:
        return None
    found = speech.SpeechTokenizer(), speech.Flow()
    found[0].load_state_dict(state["tokenizer"])
    found[1].load_state_dict(state["flow"])
    return found


def hift():
    path = _file("hift.pt")
    if path is None:
        return None
    state, out = {k: v.float() for k, v in torch.load(path, map_location="cpu").items()}, {}
    for name, value in state.items():
        if name.endswith("original1"):
            out[name.removesuffix(".parametrizations.weight.original1") + ".weight"] = value
        elif not name.endswith("original0"):
            out[name] = value
    return out


def talker():
    found = {k.removeprefix("tts."): v for k, v in weights("tts.").items()}
    if not found:
        return None
    found["head_code.0.weight"] = found["head_code.0.parametrizations.weight.original1"] / SURE
    return {k: found[k] for k in Talker().state_dict()}
