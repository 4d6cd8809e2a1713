"""A training state becomes a checkpoint folder in the MiniCPM-o 4.5 layout. usage: python -m nano.export STATE.pt TEMPLATE OUT

TEMPLATE is a complete small checkpoint; parts that are not trained here (vision, resampler, TTS, assets) are taken over from it, fitted to this vocabulary."""
import json, pathlib, shutil, sys
import torch
from safetensors.torch import load_file, save_file
from .model import SIZES
from .run import work
from .tokenizer import Text


def trained(state):
    """The exported names of a training state: llm.*, apm.*, audio_projection_layer.*"""
    state = {k.removeprefix("nano."): v for k, v in state.items()}
    return {k: v for k, v in state.items() if k.split(".")[0] in ("llm", "apm", "audio_projection_layer")}


def fitted_text_table(old, old_base, text):
    """tts.emb_text [V,d] for this vocabulary: added tokens keep their rows, text tokens get random rows of the same spread."""
    g = torch.Generator().manual_seed(4)
    new = torch.randn(text.size, old.shape[1], generator=g) * old.float().std()
    new[text.base:] = old[old_base:].float()
    return new


def config_for(template, text, old_base):
    """The template's config.json with the sizes of this model; every number describes the tensors in the file."""
    c, s, moved = json.loads((template / "config.json").read_text()), SIZES, text.base - old_base
    c.update(vocab_size=text.size, hidden_size=s["H"], intermediate_size=s["ffn"], num_hidden_layers=s["L"], num_attention_heads=s["nq"], num_key_value_heads=s["nk"],
             head_dim=s["hd"], max_window_layers=s["L"], bos_token_id=text.id["<|endoftext|>"], eos_token_id=text.id["<|im_end|>"])
    c["audio_config"].update(d_model=s["ad"], encoder_layers=s["al"], encoder_attention_heads=s["ah"], encoder_ffn_dim=s["affn"], decoder_ffn_dim=s["affn"], decoder_attention_heads=s["ah"])
    c["tts_config"].update(num_text_tokens=text.size, llm_dim=s["H"], llm_hidden_size=s["H"])
    for key in ("audio_bos_token_id", "text_eos_token_id"):
        c["tts_config"][key] += moved
    return c


def export(state, template, out):
    """Writes the folder; returns its size in bytes."""
    template, out, text = pathlib.Path(template), pathlib.Path(out), Text(work() / "tokenizer")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    tensors = load_file(template / "model.safetensors")
    old_base = json.loads((template / "config.json").read_text())["vocab_size"] - (text.size - text.base)
    kept = {k: v for k, v in tensors.items() if k.split(".")[0] in ("vpm", "resampler", "tts")}
    kept["tts.emb_text.weight"] = fitted_text_table(tensors["tts.emb_text.weight"], old_base, text)
    assert kept["resampler.kv_proj.weight"].shape[0] == SIZES["H"] and kept["tts.projector_semantic.linear1.weight"].shape[1] == SIZES["H"]
    kept.update(trained(state))
    save_file({k: v.to(torch.bfloat16).contiguous() for k, v in sorted(kept.items())}, out / "model.safetensors", metadata={"format": "pt"})
    dump = lambda name, x: (out / name).write_text(json.dumps(x, indent=2, ensure_ascii=False) + "\n")
    dump("config.json", config_for(template, text, old_base))
    generation = json.loads((template / "generation_config.json").read_text())
    generation.update(bos_token_id=text.id["<|endoftext|>"], pad_token_id=text.id["<|endoftext|>"], eos_token_id=[text.id["<|im_end|>"], text.id["<|endoftext|>"]])
    dump("generation_config.json", generation)
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"):
        shutil.copyfile(work() / "tokenizer" / name, out / name)
    shutil.copyfile(template / "preprocessor_config.json", out / "preprocessor_config.json")
    for file in sorted((template / "assets").rglob("*")):
        if file.is_file():
            target = out / file.relative_to(template)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return sum(f.stat().st_size for f in out.rglob("*") if f.is_file())


if __name__ == "__main__":
    size = export(torch.load(sys.argv[1])["model"], sys.argv[2], sys.argv[3])
    print(f"{sys.argv[3]}: {size / 1e6:.2f} MB")
    assert size <= 20e6
