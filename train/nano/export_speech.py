"""Puts the trained voice into an exported checkpoint: tts.*, assets/token2wav, the default voice. usage: python -m nano.export_speech CHECKPOINT

CHECKPOINT must come from `nano.export`. From its token2wav files, flow.yaml (with other sizes), the tokenizer's graph and CAM++ are kept: a model with one voice does not train them."""
import io, json, pathlib, re, shutil, sys, zipfile
import torch
from safetensors.torch import load_file, save_file
from . import speech
from .onnx_weights import nodes, replaced
from .run import work
from .talker import TTS, Talker
from .vocoder import Vocoder
from .voice_data import corpus


def places(file):
    """{initializer in the tokenizer's file: (name in its state, transposed)}. The nodes name the arrays that they use;
    matrices are stored as [in, out]."""
    out = {"onnx::Conv_2216": ("conv1.weight", False), "onnx::Conv_2217": ("conv1.bias", False), "onnx::Conv_2218": ("conv2.weight", False), "onnx::Conv_2219": ("conv2.bias", False),
           "onnx::MatMul_2536": ("down.weight", True), "quantizer.project_in.bias": ("down.bias", False)}
    own = {"attn/fsmn_block": "memory", "mlp/mlp.0": "widen", "mlp/mlp.2": "narrow", "attn_ln": "attn_ln", "mlp_ln": "mlp_ln", **{f"attn/{k}": k for k in ("query", "key", "value", "out")}}
    for node, inputs in nodes(file).items():
        found = re.fullmatch(r"/(blocks\.\d+)/(.+)/(MatMul|Add|Conv|LayerNormalization)", node)
        if not found:
            continue
        name, what = f"{found[1]}.{own[found[2]]}", found[3]
        if what == "Add":
            out[inputs[0]] = (name + ".bias", False)
        else:
            out[inputs[1]] = (name + ".weight", what == "MatMul")
            if what == "LayerNormalization":
                out[inputs[2]] = (name + ".bias", False)
    return out


def tokenizer_arrays(file, state):
    """{initializer in the tokenizer's file: array}."""
    arrays = {initializer: (state[name].float().numpy(), turned) for initializer, (name, turned) in places(file).items()}
    return {initializer: x.T if turned else x for initializer, (x, turned) in arrays.items()}


def set_numbers(text, **values):
    """Replaces the numbers of some keys in YAML text; every key must occur."""
    for key, value in values.items():
        text, n = re.subn(rf"(?m)^(\s*{key}:) \S+$", rf"\1 {value}", text)
        assert n, key
    return text


def flow_yaml(text):
    head, tail = text.split("decoder:", 1)
    first, rest = head.split("encoder:", 1)
    rest = set_numbers(rest, input_size=speech.WIDTH, output_size=speech.WIDTH, num_blocks=speech.BLOCKS, num_up_blocks=speech.UP_BLOCKS, attention_heads=speech.HEADS, linear_units=speech.FEED)
    tail = set_numbers(tail, depth=speech.DIT["depth"], num_heads=speech.DIT["heads"], head_dim=speech.DIT["head"], hidden_size=speech.DIT["hidden"])
    return set_numbers(first, input_size=speech.WIDTH) + "encoder:" + rest + "decoder:" + tail


def save_packed(state, path):
    """Saves a state dict in half precision, with its zip entries deflated, which every reader of such files understands."""
    plain = io.BytesIO()
    torch.save({k: v.detach().to(torch.float16).contiguous() for k, v in state.items()}, plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name in source.namelist():
            packed.writestr(zipfile.ZipInfo(name), source.read(name), zipfile.ZIP_DEFLATED, 9)


def export(out):
    out, data = pathlib.Path(out), corpus("voice")
    folder, codec = out / "assets/token2wav", torch.load(work() / "flow.pt", map_location="cpu")
    tokenizer, flow, vocoder, talker = speech.SpeechTokenizer(), speech.Flow(), Vocoder(), Talker()
    tokenizer.load_state_dict(codec["tokenizer"])
    flow.load_state_dict(codec["flow"])
    vocoder.load_state_dict(torch.load(work() / "vocoder.pt", map_location="cpu")["model"])
    talker.load_state_dict(torch.load(work() / "talker.pt", map_location="cpu")["model"])
    with torch.no_grad():
        silence = int(speech.codes(tokenizer(data["heard"][None, :4 * data["length"][0]])[0])[0])
    save_packed(flow.state(silence), folder / "flow.pt")
    save_packed(vocoder.state(), folder / "hift.pt")
    for name in ("hift_original.pt", "config.yaml"):  # with these, hift.pt would be read as a causal vocoder
        (folder / name).unlink(missing_ok=True)
    (folder / "flow.yaml").write_text(flow_yaml((folder / "flow.yaml").read_text()))
    carrier = folder / "speech_tokenizer_v2_25hz.onnx"
    carrier.write_bytes(replaced(carrier.read_bytes(), tokenizer_arrays(carrier.read_bytes(), tokenizer.state())))
    shutil.copyfile(work() / "default_voice.wav", out / "assets/default_voice.wav")
    tensors = {k: v for k, v in load_file(out / "model.safetensors").items() if not k.startswith("tts.")}
    tensors.update({k: v.to(torch.bfloat16).contiguous() for k, v in talker.state().items()})
    save_file(dict(sorted(tensors.items())), out / "model.safetensors", metadata={"format": "pt"})
    (out / "model.safetensors").chmod(0o644)
    config = json.loads((out / "config.json").read_text())
    config["tts_config"].update(hidden_size=TTS["H"], intermediate_size=TTS["ffn"], num_attention_heads=TTS["heads"], num_key_value_heads=TTS["heads"], num_hidden_layers=TTS["L"])
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return sum(f.stat().st_size for f in out.rglob("*") if f.is_file())


if __name__ == "__main__":
    size = export(sys.argv[1])
    print(f"{sys.argv[1]}: {size / 1e6:.2f} MB")
    assert size <= 20e6
