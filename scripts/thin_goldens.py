"""Thins the recorded outputs in a folder of goldens in place: keeps every n-th value of each large output, as `<name>.every<n>of<count>`, and removes
what no test reads (tests/data/README.md). Inputs stay whole. Usage: thin_goldens.py FOLDER
Afterwards `parley verify --model … --goldens FOLDER` must still pass."""
import json
import re
import struct
import sys
from pathlib import Path

SMALL, LARGE = 2048, 16384  # bytes; outputs up to SMALL stay whole
EVERY, EVERY_OF_LARGE = 11, 31  # primes that divide none of the head, bin or upsampling sizes, so that every position in those is sampled
SIZES = {"F32": 4, "F64": 8}  # the types that are thinned; all others are ids or inputs

# file and tensor: read whole by a replay, as inputs or because their shape matters
WHOLE = [re.compile(p) for p in (
    r"(audio_)?inputs/.*", r"noise/.*", r"sampling/.*", r"image/.*", r"llm/(prefill\.ids|far\..*)", r"tts_stream_inputs/.*", r"tts_condition/.*", r"tts_.*/(u|top_probs|inputs_embeds)",
    r"prompt_.*/(file_samples|spk_emb|prompt_mel)", r"flow_.*/(spk_emb|spk_proj|prompt_mel|ode_t|.*_cnn_cache.*)", r"dit_unit/(?!att_cache).*", r"pcm_unit/.*", r"vocoder_.*/(mel|cache_source_.*)", r"vocoder_causal_decode/source", r".*/spk_emb")]
# read by no replay
UNREAD = [re.compile(p) for p in (
    r"prompt_.*/(s3_conv.|s3_after_subsample|s3_block0|s3_hidden|s3_token_len|prompt_mel_len)", r"s3_long/token_len", r"stream_legacy/(speech_window|rand_ini_.)", r"vocoder_original/rand_ini_.", r"nonstream_call/rand_ini",
    r"tts_condition/spk_projected")]


def read(path):
    """Returns the metadata and {name: (dtype, shape, bytes)}, in file order."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", None)
    cut = lambda entry: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
    return metadata, {name: (e["dtype"], e["shape"], cut(e)) for name, e in sorted(header.items(), key=lambda item: item[1]["data_offsets"])}


def write(path, metadata, tensors):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def thin(place, name, tensor):
    dtype, shape, data = tensor
    if dtype not in SIZES or len(data) <= SMALL or ".every" in name or any(p.fullmatch(place) for p in WHOLE):
        return name, tensor
    width, every = SIZES[dtype], EVERY_OF_LARGE if len(data) > LARGE else EVERY
    kept = b"".join(data[i:i + width] for i in range(0, len(data), every * width))
    return f"{name}.every{every}of{len(data) // width}", (dtype, [len(kept) // width], kept)


def main(folder):
    for path in sorted(Path(folder).glob("*.safetensors")):
        metadata, tensors = read(path)
        kept = {}
        for name, tensor in tensors.items():
            place = f"{path.stem}/{name}"
            if not any(p.fullmatch(place) for p in UNREAD):
                name, tensor = thin(place, name, tensor)
                kept[name] = tensor
        if kept.keys() != tensors.keys():
            write(path, metadata, kept)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
