#!/usr/bin/env python3
"""Cuts the first tokens of every tensor of a safetensors file laid out tokens x heads x dim.

  tools/cut_activations.py IN.safetensors OUT.safetensors TOKENS

Causal attention over the first TOKENS tokens needs no later token, so the cut is a complete problem of its own.
Metadata is kept and gains "cut". Tensors are written in name order.
"""
import json
import struct
import sys

BYTES = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1}


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    source, target, tokens = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(source, "rb") as file:
        raw = file.read()
    length = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
    metadata = header.pop("__metadata__", {})
    metadata["cut"] = "tokens 0 to %d of %s" % (tokens - 1, source.rsplit("/", 1)[-1])
    out_header, out_data = {"__metadata__": metadata}, b""
    for name in sorted(header):
        entry = header[name]
        shape = entry["shape"]
        row = BYTES[entry["dtype"]]
        for extent in shape[1:]:
            row *= extent
        if shape[0] < tokens:
            sys.exit("%s has %d tokens, fewer than %d" % (name, shape[0], tokens))
        begin = entry["data_offsets"][0]
        cut = data[begin:begin + tokens * row]
        out_header[name] = {"dtype": entry["dtype"], "shape": [tokens] + shape[1:],
                            "data_offsets": [len(out_data), len(out_data) + len(cut)]}
        out_data += cut
    text = json.dumps(out_header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + out_data)


if __name__ == "__main__":
    main()
