#!/usr/bin/env python3
"""Makes small networks of the two kinds that a reference voice is heard with, for run_graphs.py to run.

usage: make_graphs.py OUT_FOLDER [full]     needs torch 2.13.0 and onnx 1.23.2 from PyPI; then run_graphs.py OUT_FOLDER

campplus.onnx is written by torch's older exporter, opset 13, from a network of CAM++'s structure (Wang et al. 2023), with a `Pad` of
nothing in front of each `AveragePool`, as that exporter wrote it until it was mended (pytorch issues 29282 and 56218). At full size
(`full`) it has 3,206 nodes, of them 52 `Pad` and 52 `AveragePool`, and 617 initializers: exactly what is told of the published file.
speech_tokenizer_v2_25hz.onnx has the structure and the names of S3 tokenizer v2, and can be run, too. Weights are random.
"""
import math
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper
from torch import nn


class Residual(nn.Module):
    def __init__(self, width: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, (stride, 1), 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(width, width, 1, (stride, 1), bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class Head(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(Residual(width, 2), Residual(width, 1))
        self.layer2 = nn.Sequential(Residual(width, 2), Residual(width, 1))
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, (2, 1), 1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        x = self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x.unsqueeze(1))))))
        x = F.relu(self.bn2(self.conv2(x)))
        return x.reshape(x.shape[0], x.shape[1] * x.shape[2], x.shape[3])


class Mask(nn.Module):
    """Context-aware masking: the mean of everything plus the means of segments of 100."""

    def __init__(self, width: int, out: int, dilation: int):
        super().__init__()
        self.linear_local = nn.Conv1d(width, out, 3, padding=dilation, dilation=dilation, bias=False)
        self.linear1, self.linear2 = nn.Conv1d(width, width // 2, 1), nn.Conv1d(width // 2, out, 1)

    def forward(self, x):
        segments = F.avg_pool1d(x, 100, 100, ceil_mode=True)
        shape = segments.shape
        segments = segments.unsqueeze(-1).expand(shape[0], shape[1], shape[2], 100).reshape(shape[0], shape[1], -1)
        context = x.mean(-1, keepdim=True) + segments[..., : x.shape[-1]]
        return self.linear_local(x) * torch.sigmoid(self.linear2(F.relu(self.linear1(context))))


class Layer(nn.Module):
    def __init__(self, width: int, growth: int, dilation: int):
        super().__init__()
        self.bn1, self.linear1 = nn.BatchNorm1d(width), nn.Conv1d(width, 4 * growth, 1, bias=False)
        self.bn2, self.cam = nn.BatchNorm1d(4 * growth), Mask(4 * growth, growth, dilation)

    def forward(self, x):
        return self.cam(F.relu(self.bn2(self.linear1(F.relu(self.bn1(x))))))


class CamPlus(nn.Module):
    def __init__(self, head: int, growth: int, first: int, blocks: tuple, embedding: int = 192):
        super().__init__()
        self.head = Head(head)
        self.tdnn, self.tdnn_bn = nn.Conv1d(head * 10, first, 5, 2, 2, bias=False), nn.BatchNorm1d(first)
        self.blocks, self.transit_bn, self.transit = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        width = first
        for layers, dilation in zip(blocks, (1, 2, 2)):
            self.blocks.append(nn.ModuleList(Layer(width + i * growth, growth, dilation) for i in range(layers)))
            width += layers * growth
            self.transit_bn.append(nn.BatchNorm1d(width))
            self.transit.append(nn.Conv1d(width, width // 2, 1, bias=False))
            width //= 2
        self.out_bn = nn.BatchNorm1d(width)
        self.dense, self.dense_bn = nn.Conv1d(2 * width, embedding, 1, bias=False), nn.BatchNorm1d(embedding, affine=False)

    def forward(self, x):
        x = F.relu(self.tdnn_bn(self.tdnn(self.head(x.permute(0, 2, 1)))))
        for layers, bn, transit in zip(self.blocks, self.transit_bn, self.transit):
            for layer in layers:
                x = torch.cat([x, layer(x)], dim=1)
            x = transit(F.relu(bn(x)))
        x = F.relu(self.out_bn(x))
        x = torch.cat([x.mean(dim=-1), x.std(dim=-1, unbiased=True)], dim=-1)
        return self.dense_bn(self.dense(x.unsqueeze(dim=-1)).squeeze(dim=-1))


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Attention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.fsmn_block = nn.Conv1d(width, width, 31, padding=15, groups=width, bias=False)
        self.heads = width // 64

    def forward(self, x):
        b, n, width = x.shape
        frequency = 10000.0 ** (-torch.arange(0, 64, 2) / 64.0)
        angles = torch.arange(n).unsqueeze(1) * frequency
        angles = torch.cat([angles, angles], 1)
        split = lambda y: y.reshape(b, n, self.heads, 64).transpose(1, 2)
        v = self.value(x)
        q, k = (rotate(split(y), angles.cos(), angles.sin()) * 64**-0.25 for y in (self.query(x), self.key(x)))
        heard = torch.softmax(q @ k.transpose(2, 3), -1) @ split(v)
        memory = self.fsmn_block(v.transpose(1, 2)).transpose(1, 2) + v
        return self.out(heard.transpose(1, 2).reshape(b, n, width)) + memory


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.attn_ln, self.attn = nn.LayerNorm(width, eps=1e-6), Attention(width)
        self.mlp_ln, self.mlp = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.attn_ln(x))
        return x + self.mlp(self.mlp_ln(x))


class Quantizer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.project_in = nn.Linear(width, 8)

    def forward(self, x):
        digits = torch.round(torch.tanh(self.project_in(x)) * (1 - 1e-6)) + 1
        return (digits * 3.0 ** torch.arange(8)).sum(-1).to(torch.int32)


class SpeechTokenizer(nn.Module):
    def __init__(self, width: int, blocks: int):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(128, width, 3, 2, 1), nn.Conv1d(width, width, 3, 2, 1)
        self.blocks, self.quantizer = nn.ModuleList(Block(width) for _ in range(blocks)), Quantizer(width)

    def forward(self, mel):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.quantizer(x)


def randomize(network: nn.Module, seed: int) -> nn.Module:
    """Weights that keep activations at their size, and none that is in the network twice: the exporter would share it."""
    made = torch.Generator().manual_seed(seed)
    for name, tensor in list(network.named_parameters()) + list(network.named_buffers()):
        if not tensor.is_floating_point():
            continue
        with torch.no_grad():
            if name.endswith("running_var") or (tensor.dim() == 1 and name.endswith("weight")):
                tensor.copy_(1 + 0.1 * torch.rand(tensor.shape, generator=made))
            elif tensor.dim() == 1:
                tensor.copy_(0.1 * torch.randn(tensor.shape, generator=made))
            else:
                tensor.copy_(torch.randn(tensor.shape, generator=made) * math.sqrt(1.5 / tensor[0].numel()))
    return network.eval()


def export(network: nn.Module, example: torch.Tensor, file: Path, axes: dict, opset: int) -> onnx.ModelProto:
    torch.onnx.export(network, (example,), str(file), opset_version=opset, dynamo=False, input_names=["input"], output_names=["output"], dynamic_axes=axes)
    return onnx.load(str(file))


def put_pads_before_pools(model: onnx.ModelProto) -> None:
    nodes = []
    for node in model.graph.node:
        if node.op_type == "AveragePool":
            kept = [a for a in node.attribute if a.name != "count_include_pad"]
            del node.attribute[:]
            node.attribute.extend(kept)
            prefix = node.name.removesuffix("AveragePool")
            pads = numpy_helper.from_array(np.zeros(6, np.int64))
            nodes.append(helper.make_node("Constant", [], [prefix + "pads"], prefix + "pads", value=pads))
            nodes.append(helper.make_node("Pad", [node.input[0], prefix + "pads"], [prefix + "Pad_output_0"], prefix + "Pad", mode="constant"))
            node.input[0] = prefix + "Pad_output_0"
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def rename(model: onnx.ModelProto, names: dict[str, str]) -> None:
    for tensor in model.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = names.get(name, name)


def published_names(model: onnx.ModelProto) -> dict[str, str]:
    """The published file's initializers that have numbers for names."""
    used = {node.name: [n for n in node.input] for node in model.graph.node}
    return {
        used["/conv1/Conv"][1]: "onnx::Conv_2216",
        used["/conv1/Conv"][2]: "onnx::Conv_2217",
        used["/conv2/Conv"][1]: "onnx::Conv_2218",
        used["/conv2/Conv"][2]: "onnx::Conv_2219",
        used["/quantizer/project_in/MatMul"][1]: "onnx::MatMul_2536",
    }


def tell(file: Path, model: onnx.ModelProto) -> None:
    onnx.save(model, str(file))
    print(f"{file.name}: {len(model.graph.node)} nodes, {len(model.graph.initializer)} initializers, opset {model.opset_import[0].version}")


def main() -> None:
    out, full = Path(sys.argv[1]), sys.argv[2:] == ["full"]
    speaker = randomize(CamPlus(32, 32, 128, (12, 24, 16)) if full else CamPlus(2, 4, 16, (2, 2, 2)), 1)
    file = out / "campplus.onnx"
    model = export(speaker, torch.randn(1, 345, 80), file, {"input": {0: "B", 1: "T"}, "output": {0: "B"}}, 13)
    put_pads_before_pools(model)
    tell(file, model)

    tokenizer = randomize(SpeechTokenizer(*((1280, 6) if full else (64, 1))), 2)
    file = out / "speech_tokenizer_v2_25hz.onnx"
    model = export(tokenizer, torch.randn(1, 128, 300), file, {"input": {2: "T"}, "output": {1: "N"}}, 17)
    rename(model, published_names(model))
    tell(file, model)


if __name__ == "__main__":
    main()
