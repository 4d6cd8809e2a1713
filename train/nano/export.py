"""Exports a training state as a checkpoint folder in the MiniCPM-o 4.5 layout. usage: python -m nano.export STATE.pt TEMPLATE OUT [PART …]

TEMPLATE is a complete small checkpoint that provides the config and the untrained files of the voice. PARTs to add to the LLM: hearing, seeing (tower.pt
of the work folder), speaking (run `nano.export_speech` afterwards). Other parts are left out with their tensors, and config.json says so (but a shipped
model used as the template keeps its voice). The engine then refuses such input, or answers with text alone.
"hearing?" stores the encoder for later training without offering it."""
import json, pathlib, shutil, sys
import torch
from safetensors.torch import load_file, save_file
from . import pictures, sights
from .model import SIZES
from .run import work
from .shipped import TOKENIZER
from .tokenizer import Text
from .tower import TOWER


PREFIXES = dict(hearing=("apm", "audio_projection_layer"), seeing=("vpm", "resampler"), speaking=("tts",))
FLAGS = dict(hearing="init_audio", speaking="init_tts", seeing="init_vision")


def trained(state, parts):
    """A training state's tensors under their exported names: llm.*, with hearing also apm.*,
    audio_projection_layer.*"""
    state = {k.removeprefix("nano."): v for k, v in state.items()}
    return {k: v for k, v in state.items() if k.split(".")[0] in ("llm", *(PREFIXES["hearing"] if "hearing" in parts else ()))}


def config_for(template, text, old_base, parts):
    """The template's config.json with the sizes of this model; every number matches the tensors in the file."""
    c, s, moved = json.loads((template / "config.json").read_text()), SIZES, text.base - old_base
    c.update(vocab_size=text.size, hidden_size=s["H"], intermediate_size=s["ffn"], num_hidden_layers=s["L"], num_attention_heads=s["nq"], num_key_value_heads=s["nk"],
             head_dim=s["hd"], max_window_layers=s["L"], bos_token_id=text.id["<|endoftext|>"], eos_token_id=text.id["<|im_end|>"])
    c["audio_config"].update(d_model=s["ad"], encoder_layers=s["al"], encoder_attention_heads=s["ah"], encoder_ffn_dim=s["affn"], decoder_ffn_dim=s["affn"], decoder_attention_heads=s["ah"])
    c["tts_config"].update(num_text_tokens=text.size, llm_dim=s["H"], llm_hidden_size=s["H"])
    for key in ("audio_bos_token_id", "text_eos_token_id"):
        c["tts_config"][key] += moved
    c.update(query_num=sights.ROWS, image_size=pictures.SIDE, patch_size=pictures.PATCH, drop_vision_last_layer=False, slice_mode=False, use_image_id=False)
    c["slice_config"].update(max_slice_nums=1, patch_size=pictures.PATCH, scale_resolution=pictures.SIDE)
    c["vision_config"].update(hidden_size=TOWER["d"], intermediate_size=TOWER["ffn"], num_attention_heads=TOWER["heads"], num_hidden_layers=TOWER["layers"],
                              image_size=TOWER["side"] * pictures.PATCH, patch_size=pictures.PATCH)
    c.update({flag: part in parts for part, flag in FLAGS.items()})
    return c


def export(state, template, out, parts):
    """Writes the folder; returns its size in bytes."""
    offered, parts = [p for p in parts if not p.endswith("?")], [p.removesuffix("?") for p in parts]
    template, out, text = pathlib.Path(template), pathlib.Path(out), Text(work() / "tokenizer")
    assert template.resolve() != out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    old_base = json.loads((template / "config.json").read_text())["vocab_size"] - (text.size - text.base)
    kept = trained(state, parts)
    if "seeing" in parts:
        kept.update(torch.load(work() / "tower.pt", map_location="cpu")["model"])
    if "speaking" in parts:
        tensors = load_file(template / "model.safetensors")
        if tensors["tts.projector_semantic.linear1.weight"].shape[1] == SIZES["H"]:  # the template is an earlier export
            kept.update({k: v for k, v in tensors.items() if k.startswith("tts.")})
        shutil.copytree(template / "assets", out / "assets", copy_function=shutil.copyfile)
    save_file({k: v.to(torch.bfloat16).contiguous() for k, v in sorted(kept.items())}, out / "model.safetensors", metadata={"format": "pt"})
    (out / "model.safetensors").chmod(0o644)
    dump = lambda name, x: (out / name).write_text(json.dumps(x, indent=2, ensure_ascii=False) + "\n")
    dump("config.json", config_for(template, text, old_base, offered))
    generation = json.loads((template / "generation_config.json").read_text())
    generation.update(bos_token_id=text.id["<|endoftext|>"], pad_token_id=text.id["<|endoftext|>"], eos_token_id=[text.id["<|im_end|>"], text.id["<|endoftext|>"]])
    dump("generation_config.json", generation)
    for name in TOKENIZER:
        shutil.copyfile(work() / "tokenizer" / name, out / name)
    processor = json.loads((template / "preprocessor_config.json").read_text())
    processor.update(max_slice_nums=1, scale_resolution=pictures.SIDE, patch_size=pictures.PATCH, image_feature_size=sights.ROWS, slice_mode=False, use_image_id=False)
    dump("preprocessor_config.json", processor)
    return sum(f.stat().st_size for f in out.rglob("*") if f.is_file())


if __name__ == "__main__":
    state, template, out, *parts = sys.argv[1:]
    assert set(parts) <= {*PREFIXES, "hearing?"}, parts
    size = export(torch.load(state, map_location="cpu")["model"], template, out, parts)
    print(f"{out}: {size / 1e6:.2f} MB")
