"""Records goldens of this model for `parley verify`: tokenizer and LLM; if it hears, mel, encoder and one greedy duplex session; if it sees, the rows
of pictures and a session with frames. usage: python -m nano.goldens MODEL OUT"""
import hashlib, json, pathlib, sys
import numpy as np
import torch
from safetensors.torch import save_file
from . import layouts, mel, pictures, sights, stream, synth
from .evaluate import load

QUESTION = "what is the capital of france"
PICTURES = dict(square=(168, 168, 3), frame=(196, 140, 9), tall=(140, 196, 5))  # width, height and pattern, in sizes that the engine does not have to change


class Golden:
    def __init__(self, out):
        self.out = pathlib.Path(out)
        self.out.mkdir(parents=True, exist_ok=True)

    def write(self, stem, cases, tensors=None):
        (self.out / f"{stem}.json").write_text(json.dumps(cases, ensure_ascii=False))
        if tensors:
            self.save(stem, tensors)

    def save(self, stem, tensors):
        path = self.out / f"{stem}.safetensors"
        save_file({k: v.detach().clone().contiguous() for k, v in tensors.items()}, path, metadata={"format": "pt"})
        path.chmod(0o644)


def tokenizer_cases(text, model):
    config = json.loads((pathlib.Path(model) / "tokenizer_config.json").read_text())
    added = {t["content"]: int(i) for i, t in config["added_tokens_decoder"].items()}
    special = sorted(int(i) for i, t in config["added_tokens_decoder"].items() if t["special"])
    named = lambda t: [t, added[t]]
    info = dict(len=text.size, eos=named("<|im_end|>"), bos=named("<|im_start|>"), pad=named("<|endoftext|>"), unk=named("<unk>"), added_tokens=added, all_special_ids_sorted=special,
                n_bad_token_ids=len(text.bad), convert_probe={t: added[t] for t in ("<unit>", "<|listen|>", "<|turn_eos|>")})
    cases = []
    for line in ("What is your name?", "Reply with exactly: walnut violin", "it's 12 o'clock,  isn't it\n", "<|im_start|>user\nhi<|im_end|>\n", "Grüße, 你好 🙂"):
        ids = text.encode(line)
        skipped = [i for i in ids if i not in set(special)]
        plain = lambda ids: text.tok.decode(ids, skip_special_tokens=False)
        cases.append(dict(text=line, ids=ids, decoded=plain(ids), decoded_skip_special=plain(skipped)))
    return dict(tiny=dict(info=info, cases=cases))


def stream_counters(total, base, last):
    """The mel counters after a chunk that extended the buffer to `total` samples."""
    stable = (total - 200) // 160 + 1
    return dict(chunk_number=last // 100, stable_T=stable, T_full=total // 160, base_T=base, stable_T_global=base + stable, buffer_len_samples=total,
                left_samples_dropped=base * 160, core_start=last - 100, core_end=last)


def ear_cases(nano, samples, golden):
    """Streaming mel and encoder, chunk by chunk, and one offline clip."""
    wave = torch.from_numpy(samples.astype(np.float32) / 32768)
    ear, mels, encs, tensors_mel, tensors_enc = stream.Ear(nano), [], [], {}, {}
    at = 0
    while at + (16080 if at else 16560) <= len(wave):
        need = 16000 if at else 16480
        window_kv = ear.at
        rows = ear.hear(wave[at + (80 if at else 0):at + need + 80])  # starts 80 samples early, so that only the first chunk is padded on the left
        i = ear.index - 1
        counters = stream_counters(len(ear.buffer), ear.base, ear.last)
        frames = 104 if i else 102
        mels.append(dict(i=i, samples=[at, at + need], frames=frames, emitted_frames=frames, **counters))
        encs.append(dict(i=i, samples=[at, at + need], mel_frames=frames, kv_before=window_kv, kv_after=ear.at, pos_start=window_kv, tokens=len(rows)))
        tensors_enc[f"st.question.{i}.emb"] = rows
        x = mel.log_power(ear.buffer)
        x = (torch.maximum(x, x.max() - 8 if len(ear.buffer) >= 80000 else torch.tensor(-10.0)) + 4) / 4
        tensors_mel[f"st.question.{i}"] = x[max(0, ear.last - 102) - ear.base:ear.last + 2 - ear.base].T
        at += need
    config = dict(chunk_ms=1000, first_chunk_ms=1035, cnn_redundancy_frames=2, enable_sliding_window=True, trigger_seconds=30.0, slide_seconds=10.0)
    padded = torch.zeros(480000)
    padded[:len(wave)] = wave
    clip = mel.offline(padded)[:-(-len(wave) // 160)]
    tensors_mel["off.question"] = clip.T[None]
    tensors_mel["mel_filters_201x80"] = mel.BANK
    with torch.no_grad():
        states = nano.apm(clip[None])
        n = ((len(clip) - 1) // 2 + 1 - 5) // 5 + 1
        tensors_enc["off.question.0.0"] = nano.audio_projection_layer(states)[0, :n]
    golden.write("mel", dict(offline=[dict(name="question", audios=[["question", 0, 0]], shape=[1, 80, len(clip)], lens=[[len(clip)]])],
                             streaming=[dict(name="question", audio="question", config=config, full=True, chunks=mels)]), tensors_mel)
    golden.write("audio_encoder", dict(offline=[dict(name="question", clips=[["question", 0, 0]], chunk_length=1.0, lens=[[len(clip)]], tokens=[[n]])],
                                       streaming=[dict(name="question", audio="question", chunks=encs)]), tensors_enc)


@torch.no_grad()
def llm_cases(nano, text, golden):
    ids = text.encode("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nWhat is your name?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n<|tts_bos|>")
    llm, t = nano.llm, {"prefill.ids": torch.tensor(ids, dtype=torch.int32)}
    hiddens, hooks = [], []
    for layer in llm.model.layers:
        hooks.append(layer.register_forward_hook(lambda m, i, o: hiddens.append(o[0].clone())))
    kv = [[] for _ in llm.model.layers]
    e = llm.model.embed_tokens(torch.tensor(ids))
    last = llm(e[None], kv)[0]
    for hook in hooks:
        hook.remove()
    for k, h in enumerate([e] + hiddens[:-1] + [last]):
        t[f"prefill.hidden.{k}"] = h
    logits = llm.lm_head(last)
    t.update({"prefill.logits_argmax": logits.argmax(-1).int(), "prefill.logits_last8": logits[-8:], "chunked.logits_last": logits[-1]})
    t.update({"prefill.k0": kv[0][0][0], "prefill.v0": kv[0][1][0], "prefill.klast": kv[-1][0][0], "prefill.vlast": kv[-1][1][0]})
    preserve, length = 10, 9

    def dropped(k):
        angle = torch.cat([llm.inverse, llm.inverse]) * -length
        k, hd = k[:, preserve + length:], k.shape[-1]
        turned = k * angle.cos() + torch.cat([-k[..., hd // 2:], k[..., :hd // 2]], -1) * angle.sin()
        return turned

    keep = lambda x, tail: torch.cat([x[:, :preserve], tail], 1)
    t["drop.k0"], t["drop.klast"] = keep(kv[0][0][0], dropped(kv[0][0][0])), keep(kv[-1][0][0], dropped(kv[-1][0][0]))
    t["drop.vlast"] = keep(kv[-1][1][0], kv[-1][1][0][:, preserve + length:])
    t["far.hidden_last"] = llm(e[None, :16])[0]  # positions from 8000: rotary positions are relative, so the states are the same
    steps, rows, logit = [], [], logits[-1]
    for _ in range(8):
        steps.append(int(logit.argmax()))
        logit = llm.lm_head(llm(llm.model.embed_tokens(torch.tensor([[steps[-1]]])), kv)[0, -1])
        rows.append(logit)
    t["decode.logits"] = torch.stack(rows)
    golden.write("llm", dict(decode_ids=steps, drop=dict(length=length, preserve=preserve, ok=True, new_len=len(ids) - length)), t)


def procedural(width, height, k):
    """The picture that the schema defines by three numbers: uint8 [height,width,3]."""
    y, x = np.mgrid[:height, :width].astype(np.int64)
    check = (x // (11 + k) + y // (7 + k)) % 2 * 60
    return (np.stack([x * 255 // max(width - 1, 1) + check, y * 255 // max(height - 1, 1) + x * y // (97 + k), (x * x + 3 * y * y) // (61 + 13 * k) + check], 2) % 256).astype(np.uint8)


@torch.no_grad()
def image_cases(nano, text, golden):
    """How pictures are sliced, and what the tower and the resampler compute from them."""
    seen, tensors, slicing, cases, tower = layouts.picture(text), {}, [], [], nano.tower
    ids = lambda before: before + [text.id["<unk>"] if i == layouts.SIGHT else i for i in seen]
    for name, (w, h, k) in PICTURES.items():
        picture = procedural(w, h, k)
        x, rows, columns = pictures.patches(picture)
        slicing.append(dict(image=name, max_slice_nums=1, grid_cols_rows=None, sizes_wh=[[w, h]], sha256_rgb=[hashlib.sha256(picture.tobytes()).hexdigest()], tgt_sizes_hw=[[rows, columns]],
                            placeholder_ids_no_image_id=ids([]), placeholder_ids_image_id3=ids(text.encode("<image_id>3</image_id>"))))
        cases.append(dict(name=name, images=[name], max_slice_nums=1, tgt_sizes_hw=[[rows, columns]], out_shape=[1, sights.ROWS, tower.resampler.H]))
        tensors[f"vis.{name}.0.vpm_last"] = tower.vpm(x[None], rows, columns)[0]
        tensors[f"vis.{name}.resampler"] = tower(x[None], rows, columns)
    golden.write("image", dict(procedural={name: dict(w=w, h=h, k=k) for name, (w, h, k) in PICTURES.items()}, slicing=slicing, vision=cases), tensors)


def duplex_case(nano, text, samples, golden, name="N_nano", frames=()):
    """A greedy session in the schema of the duplex goldens: ids, texts, flags, cache lengths, pending logits. frames: names of the units' pictures."""
    system = layouts.SYSTEM[0]
    d = stream.Duplex(nano, text, stream.Settings(temperature=0), system)
    prefix, suffix = f"<|im_start|>system\n{system}\n<|audio_start|>", "<|audio_end|><|im_end|>"
    units, tensors, start = [], {}, d.mind.length
    lengths = []
    for i in range(len(samples) // 16000):
        before, shown = d.mind.length, frames[i % len(frames)] if frames else None
        out = d.unit(samples[i * 16000:i * 16000 + 16000].astype(np.float32) / 32768, shown and nano.tower.look(procedural(*PICTURES[shown])))
        tensors[f"u{i}.pending_logits"], top = d.pending, d.pending.topk(4)
        said = out["ids"][1:-2]
        lengths.append(d.mind.length - before)
        units.append(dict(i=i, input=dict(audio=["question", i * 16000, i * 16000 + 16000], **(dict(frames=[shown], max_slice_nums=1) if shown else {})), prefill_success=True, prefill_reason="",
                          kv_after_prefill=before + 11 + (len(layouts.picture(text)) if shown else 0), audio_buffer_left=80,
                          whisper_kv=d.ear.at, pending_top4=[list(p) for p in zip(top.indices.tolist(), top.values.tolist())], generate_args=dict(decode_mode="greedy"),
                          is_listen=out["listen"], text="" if out["listen"] else out["text"], end_of_turn=out["end"] and not out["listen"], n_tokens=len(said), current_time=i + 1,
                          kv_after_generate=d.mind.length - 2, decode_calls=[dict(decoded=t) for t in d.calls], current_turn_ended=not d.open, needs_finalize=True,
                          pending_terminator=out["ids"][-2], unit_token_ids=said, appended_ids=out["ids"], kv_after_finalize=d.mind.length,
                          window=dict(preserve=start, unit_ids=list(range(i + 1)), unit_lens=list(lengths), position_offset=0, events=0, dropped_tokens=0, previous_ids=[], previous_text="")))
    tensors["final.k0"], tensors["final.vlast"] = d.mind.kv[0][0][0][:, -40:], d.mind.kv[-1][1][0][:, -40:]
    golden.write(f"duplex_{name}", dict(name=name, capability=dict(generate_audio=False, force_listen_count=3), prefix=prefix, suffix=suffix, ref=None, generate_defaults={},
                                       prepare=dict(prefix_ids=text.encode(prefix), suffix_ids=text.encode(suffix), kv=start, system_preserve_length=start),
                                       units=units, generated_tokens_history=d.history), tensors)


def main(model, out):
    torch.set_num_threads(1)
    nano, text = load(model)
    golden = Golden(out)
    golden.write("tokenizer", tokenizer_cases(text, model))
    llm_cases(nano, text, golden)
    if nano.tower:
        image_cases(nano, text, golden)
    if not json.loads((pathlib.Path(model) / "config.json").read_text())["init_audio"]:
        return
    y = synth.say(QUESTION, "en-us")
    y = np.concatenate([np.zeros(12000, np.float32), y, np.zeros(16000 * 6, np.float32)])[:16000 * 7 + 480]
    y += np.random.default_rng(0).standard_normal(len(y)).astype(np.float32) * .002
    samples = np.clip(y * 32768, -32768, 32767).astype(np.int16)
    golden.save("audio_inputs", {"question": torch.from_numpy(samples)})
    ear_cases(nano, samples, golden)
    duplex_case(nano, text, samples, golden)
    if nano.tower:
        duplex_case(nano, text, samples, golden, "V_nano", ["frame", "square"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
