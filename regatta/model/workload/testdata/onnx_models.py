"""Writes small transformers as ONNX, each with the sizes it has: python3 onnx_models.py FOLDER [NAME...]

Exit status 77 where Python has no torch.
"""
import json
import math
import sys

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(77)


class Mlp(nn.Module):
    def __init__(self, hidden, ffn, gated, bias):
        super().__init__()
        self.up = nn.Linear(hidden, ffn, bias=bias)
        self.gate = nn.Linear(hidden, ffn, bias=bias) if gated else None
        self.down = nn.Linear(ffn, hidden, bias=bias)

    def forward(self, x):
        if self.gate is None:
            return self.down(nn.functional.gelu(self.up(x)))
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class RmsNorm(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotate(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class Attention(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.o = o
        kv = o["kv_heads"] * o["dim"]
        self.q = nn.Linear(o["hidden"], o["heads"] * o["dim"], bias=o["qkv_bias"])
        self.k = nn.Linear(o["hidden"], kv, bias=o["qkv_bias"])
        self.v = nn.Linear(o["hidden"], kv, bias=o["qkv_bias"])
        self.out = nn.Linear(o["heads"] * o["dim"], o["hidden"], bias=o["bias"])

    def forward(self, x, rotary):
        o = self.o
        b, s, _ = x.shape
        q = self.q(x).view(b, s, o["heads"], o["dim"]).transpose(1, 2)
        k = self.k(x).view(b, s, o["kv_heads"], o["dim"]).transpose(1, 2)
        v = self.v(x).view(b, s, o["kv_heads"], o["dim"]).transpose(1, 2)
        if rotary is not None:
            cos, sin = rotary
            q = q * cos + rotate(q) * sin
            k = k * cos + rotate(k) * sin
        group = o["heads"] // o["kv_heads"]
        if group > 1:
            k = k[:, :, None].expand(b, o["kv_heads"], group, s, o["dim"]).reshape(b, o["heads"], s, o["dim"])
            v = v[:, :, None].expand(b, o["kv_heads"], group, s, o["dim"]).reshape(b, o["heads"], s, o["dim"])
        scores = q @ k.transpose(-2, -1) / math.sqrt(o["dim"])
        if o["causal"]:
            mask = torch.tril(torch.ones(o["seq"], o["seq"])).view(1, 1, o["seq"], o["seq"])[:, :, :s, :s]
            scores = scores.masked_fill(mask == 0, float("-inf"))
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, s, o["heads"] * o["dim"]))


class FusedAttention(nn.Module):
    """Queries, keys and values by one product, as GPT-2 has it."""

    def __init__(self, o):
        super().__init__()
        self.o = o
        self.qkv = nn.Linear(o["hidden"], 3 * o["hidden"])
        self.out = nn.Linear(o["hidden"], o["hidden"])

    def forward(self, x, rotary):
        o = self.o
        b, s, h = x.shape
        q, k, v = (t.view(b, s, o["heads"], o["dim"]).transpose(1, 2) for t in self.qkv(x).split(h, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(o["dim"])
        mask = torch.tril(torch.ones(o["seq"], o["seq"])).view(1, 1, o["seq"], o["seq"])[:, :, :s, :s]
        scores = scores.masked_fill(mask == 0, float("-inf"))
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, s, h))


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        norm = RmsNorm if o["rms"] else nn.LayerNorm
        self.first, self.second = norm(o["hidden"]), norm(o["hidden"])
        self.attention = FusedAttention(o) if o["fused"] else Attention(o)
        self.mlp = Mlp(o["hidden"], o["ffn"], o["gated"], o["bias"])

    def forward(self, x, rotary):
        x = x + self.attention(self.first(x), rotary)
        return x + self.mlp(self.second(x))


class Transformer(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.o = o
        self.tokens = nn.Embedding(o["vocab"], o["hidden"])
        self.positions = nn.Embedding(o["seq"], o["hidden"]) if o["learned"] else None
        self.blocks = nn.ModuleList(Block(o) for _ in range(o["layers"]))
        self.norm = RmsNorm(o["hidden"]) if o["rms"] else nn.LayerNorm(o["hidden"])
        self.head = nn.Linear(o["hidden"], o["vocab"], bias=False)
        if o["tied"]:
            self.head.weight = self.tokens.weight
        angles = torch.outer(torch.arange(o["seq"]).float(), 1e4 ** (-torch.arange(0, o["dim"], 2).float() / o["dim"]))
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def forward(self, ids):
        s = ids.shape[1]
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(s))
        rotary = (self.cos[:s], self.sin[:s]) if self.o["rotary"] else None
        for block in self.blocks:
            x = block(x, rotary)
        return self.head(self.norm(x))


GPT = dict(layers=2, hidden=64, heads=4, kv_heads=4, dim=16, ffn=256, seq=32, vocab=300, gated=False, bias=True,
           qkv_bias=True, rms=False, learned=True, rotary=False, causal=True, tied=True, fused=True)
LLAMA = dict(GPT, kv_heads=2, ffn=176, gated=True, bias=False, qkv_bias=False, rms=True, learned=False, rotary=True,
             tied=False, fused=False)
ENCODER = dict(GPT, causal=False, fused=False)
MODELS = {"gpt": GPT, "gpt_deep": dict(GPT, layers=5, hidden=96, heads=6, kv_heads=6, ffn=300, tied=False),
          "gpt_one": dict(GPT, layers=1), "gpt_no_positions": dict(GPT, learned=False, fused=False),
          "llama": LLAMA, "llama_wide": dict(LLAMA, layers=3, hidden=128, heads=8, kv_heads=4, dim=32, ffn=344, vocab=512),
          "llama_one_key": dict(LLAMA, kv_heads=1, layers=3), "qwen": dict(LLAMA, qkv_bias=True, layers=4),
          "encoder": ENCODER, "encoder_wide": dict(ENCODER, layers=4, hidden=128, heads=8, kv_heads=8, ffn=512, vocab=700)}



def sizes(o):
    """In the words of job_json.h; 0 for what is as usual."""
    return {"kind": "gpt" if o["causal"] else "encoder", "preset": "", "layers": o["layers"], "hidden": o["hidden"],
            "heads": o["heads"], "kv_heads": o["kv_heads"], "head_dim": o["dim"], "ffn_hidden": o["ffn"], "seq": o["seq"],
            "vocab": o["vocab"], "activation": "swiglu" if o["gated"] else "gelu",
            "positions": "learned" if o["learned"] else "rotary" if o["rotary"] else "none",
            "norm": "rmsnorm" if o["rms"] else "layernorm", "linear_biases": o["bias"],
            "qkv_biases": o["qkv_bias"] and not o["bias"], "tied_embeddings": False}


def main():
    torch.manual_seed(1)
    for name in sys.argv[2:] or MODELS:
        options = MODELS[name]
        model = Transformer(options).eval()
        for kind, axes in (("static", None), ("dynamic", {"ids": {0: "batch", 1: "seq"}})):
            path = f"{sys.argv[1]}/{name}_{kind}"
            torch.onnx.export(model, torch.zeros(1, options["seq"], dtype=torch.long), path + ".onnx",
                              input_names=["ids"], output_names=["logits"], opset_version=13, dynamic_axes=axes)
            with open(path + ".json", "w", encoding="utf-8") as file:
                json.dump(sizes(options), file)


if __name__ == "__main__":
    main()
