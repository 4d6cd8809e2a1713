"""Reads and replaces weights inside an ONNX file without an ONNX library: the nodes stay, the initializers get new
shapes and bytes (docs/model/talker.md 6.2: the file is only a container)."""
import numpy as np


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def fields(data, begin, end):
    """(number, first byte of the field, first byte of its content, first byte after it) for each field of a protobuf
    message."""
    at = begin
    while at < end:
        first = at
        key, at = _varint(data, at)
        start = at
        if key & 7 == 2:
            size, start = _varint(data, at)
            at = start + size
        else:
            at = {0: lambda: _varint(data, at)[1], 1: lambda: at + 8, 5: lambda: at + 4}[key & 7]()
        yield key >> 3, first, start, at


def _coded(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _message(number, content):
    return _coded(number << 3 | 2) + _coded(len(content)) + content


def _graph_span(data):
    (span,) = [(start, end) for number, _, start, end in fields(data, 0, len(data)) if number == 7]
    return span


def nodes(data):
    """{node name: [names of its inputs]}"""
    found = {}
    for number, _, a, b in fields(data, *_graph_span(data)):
        if number == 1:
            parts = [(n, bytes(data[x:y]).decode(errors="replace")) for n, _, x, y in fields(data, a, b)]
            found[next(v for n, v in parts if n == 3)] = [v for n, v in parts if n == 1]
    return found


def _tensor(name, array):
    """A float32 TensorProto: dims, data_type, name, raw_data."""
    return b"".join(_coded(1 << 3) + _coded(size) for size in array.shape) + _coded(2 << 3) + _coded(1) + _message(8, name.encode()) + _message(9, np.ascontiguousarray(array, np.float32).tobytes())


def replaced(data, weights):
    """The file with its initializers replaced: weights = {initializer name: array}; every initializer must be given."""
    begin, end = _graph_span(data)
    body, left = [], dict(weights)
    for number, first, a, b in fields(data, begin, end):
        if number == 5:
            name = next(bytes(data[x:y]).decode() for n, _, x, y in fields(data, a, b) if n == 8)
            body.append(_message(5, _tensor(name, left.pop(name))))
        else:
            body.append(bytes(data[first:b]))
    assert not left, left.keys()
    outer = [_message(7, b"".join(body)) if number == 7 else bytes(data[first:b]) for number, first, _, b in fields(data, 0, len(data))]
    return b"".join(outer)


def arrays(data, names):
    """{initializer name: float32 array} for some initializers, as written by `replaced`."""
    found = {}
    for number, _, a, b in fields(data, *_graph_span(data)):
        if number == 5:
            parts = [(n, x, y) for n, _, x, y in fields(data, a, b)]
            name = next(bytes(data[x:y]).decode() for n, x, y in parts if n == 8)
            if name in names:
                raw = next(bytes(data[x:y]) for n, x, y in parts if n == 9)
                found[name] = np.frombuffer(raw, np.float32).reshape([_varint(data, x)[0] for n, x, _ in parts if n == 1])
    return found
