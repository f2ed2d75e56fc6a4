"""Writes the tables of the two published models in configs/profiles from their published shapes.

Usage: python3 tools/profile/tables.py            write both tables
       python3 tools/profile/tables.py --check    compare them with what is there

How a row is computed, for the layers up to its cut:
- operations: of one sample, forward and backward. The base weights are frozen and carry adapters of
  rank R (LoRA) on every linear layer. A linear layer with P weights on T tokens costs 2 P T forward and
  2 P T for the gradient of its input, its adapter 6 R (in + out) T. Attention costs 4 T^2 d forward and
  twice that backward.
- trained_parameters: of the adapters, R (in + out) for a linear layer.
- memory_bytes: base weights in 16 bits; adapters in 32 bits four times (weights, gradients, two moments
  of AdamW); of a batch of BATCH samples the inputs of all linear layers and the attention's queries, keys
  and values in 16 bits (attention weights are computed again, as FlashAttention does).
- activation_elements: what crosses the cut, of one sample.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "profiles"


@dataclass
class Cost:
    """What some layers cost the terminal."""

    rank: int
    batch: int
    weights: int = 0
    adapters: int = 0
    operations: int = 0
    cached: int = 0
    rows: list = field(default_factory=list)

    def linear(self, inputs, outputs, tokens, extra_bias=True):
        """A linear layer with an adapter."""
        self.weights += inputs * outputs + (outputs if extra_bias else 0)
        adapter = self.rank * (inputs + outputs)
        self.adapters += adapter
        self.operations += 4 * inputs * outputs * tokens + 6 * adapter * tokens
        self.cached += inputs * tokens

    def plain(self, weights, tokens=0):
        """Frozen weights without an adapter; forward only, on so many tokens."""
        self.weights += weights
        self.operations += 2 * weights * tokens

    def attention(self, width, queries, keys):
        """Scores and mixing of `queries` tokens over `keys` tokens."""
        self.operations += 3 * 4 * queries * keys * width
        self.cached += width * (queries + 2 * keys)

    def vit_layer(self, width, hidden, tokens, images=1, fused=False):
        """A layer of a vision transformer; `fused` has one linear layer for queries, keys and values."""
        self.plain(4 * width)
        for outputs in (3 * width, width) if fused else (width,) * 4:
            self.linear(width, outputs, tokens * images)
        for _ in range(images):
            self.attention(width, tokens, tokens)
        self.linear(width, hidden, tokens * images)
        self.linear(hidden, width, tokens * images)

    def llama_layer(self, width, hidden, heads, tokens, keys_from=None, attended=None):
        """A layer of a Llama decoder. `heads` are query width and key-value width."""
        query, key = heads
        attended = tokens if attended is None else attended
        self.plain(2 * width)
        self.linear(width, query, tokens, False)
        for _ in range(2):
            self.linear(keys_from or width, key, attended if keys_from else tokens, False)
        self.attention(query, tokens, attended)
        self.linear(query, width, tokens, False)
        for _ in range(2):
            self.linear(width, hidden, tokens, False)
        self.linear(hidden, width, tokens, False)

    def cut(self, name, elements):
        """A row of the table: a cut after what was added so far."""
        memory = 2 * self.weights + 16 * self.adapters + 2 * self.batch * self.cached
        self.rows.append((name, elements, self.operations, self.adapters, memory))

    def text(self, header):
        """The table with its header of comments."""
        lines = [f"# {line}".rstrip() for line in header.strip().splitlines()]
        lines.append("name,activation_elements,operations,trained_parameters,memory_bytes")
        lines += [",".join(str(value) for value in row) for row in self.rows]
        return "\n".join(lines) + "\n"


HOW = """\
Written by tools/profile/tables.py, which says how each column is computed. A row is a cut: what a
terminal costs that runs everything up to there. The last row is the whole model."""


def smolvla():
    """SmolVLA: SigLIP, pixel shuffle, 16 layers of SmolLM2 beside 16 layers of an action expert."""
    cost = Cost(rank=16, batch=8)
    cameras, patches, visual, text, chunk = 2, 1024, 64, 48, 50
    width, hidden, heads = 960, 2560, (15 * 64, 5 * 64)
    expert, expert_hidden = 720, 2048
    cost.plain(3 * 16 * 16 * 768, patches * cameras)
    cost.plain(patches * 768)
    for layer in range(12):
        cost.vit_layer(768, 3072, patches, cameras)
        if layer % 2 == 1:
            cost.cut(f"vision layer {layer + 1} of 12", cameras * patches * 768)
    cost.plain(2 * 768)
    cost.linear(768 * 16, width, visual * cameras, False)
    cost.cut("pixel shuffle and connector", cameras * visual * width)
    # Embeddings of the instruction, the state and the noisy actions, with the time step.
    cost.plain(49280 * width + 32 * width)
    cost.linear(32, expert, chunk)
    cost.linear(2 * expert, expert, chunk)
    cost.linear(expert, expert, chunk)
    prefix = cameras * visual + text + 1
    for layer in range(16):
        cost.llama_layer(width, hidden, heads, prefix)
        if layer % 2 == 0:  # self-attention over prefix and actions
            cost.llama_layer(expert, expert_hidden, heads, chunk, attended=prefix + chunk)
        else:  # cross-attention to the keys and values of the language layer
            cost.llama_layer(expert, expert_hidden, heads, chunk, keys_from=heads[1], attended=prefix)
        if layer in (3, 7, 11):
            name = f"language and expert layer {layer + 1} of 16"
            cost.cut(name, prefix * width + chunk * expert)
    cost.linear(expert, 32, chunk)
    cost.plain(49280 * width)  # the head of the language model: loaded, and not run
    cost.cut("whole model", chunk * 32)
    header = f"""
SmolVLA, about 450 million parameters ({cost.weights / 1e6:.0f} million by this count).
Sizes: "SmolVLA: A Vision-Language-Action Model for Affordable and Efficient Robotics" (Shukor and
others, 2025): 16 layers of the language model, 64 visual tokens a frame, chunks of 50 actions, an action
expert of 0.75 times the width with alternating self- and cross-attention. "SmolVLM: Redefining small and
efficient multimodal models" (Marafioti and others, 2025): SigLIP-B/16 at 512 pixels (12 layers, width
768), pixel shuffle 4 x 4, SmolLM2-360M (width 960, feed-forward 2560, 15 heads, 5 for keys and values).
Here: {cameras} cameras, {text} tokens of instruction, adapters of rank {cost.rank} (LoRA, Hu and others, 2021) on
all linear layers, minibatches of {cost.batch}.
{HOW}"""
    return cost.text(header)


def openvla():
    """OpenVLA: DINOv2 and SigLIP side by side, a projector, 32 layers of Llama 2."""
    cost = Cost(rank=32, batch=4)
    patches, text, actions = 256, 30, 7
    dino, siglip, width, hidden = 1024, 1152, 4096, 11008
    for part in (dino, siglip):
        cost.plain(3 * 14 * 14 * part, patches)
        cost.plain(patches * part)
    # The towers run side by side; a quarter of each is a cut.
    for quarter in range(1, 5):
        for _ in range(6):
            cost.vit_layer(dino, 4 * dino, patches + 5, fused=True)
        for _ in range(27 * quarter // 4 - 27 * (quarter - 1) // 4):
            cost.vit_layer(siglip, 4304, patches, fused=True)
        cost.cut(f"vision towers {quarter} of 4", patches * (dino + siglip))
    fused = dino + siglip
    cost.linear(fused, 4 * fused, patches)
    cost.linear(4 * fused, width, patches)
    cost.linear(width, width, patches)
    cost.cut("projector", patches * width)
    tokens = patches + text + actions
    cost.plain(32064 * width)
    for layer in range(32):
        cost.llama_layer(width, hidden, (width, width), tokens)
        if layer + 1 in (1, 2, 4, 8, 16):
            cost.cut(f"language layer {layer + 1} of 32", tokens * width)
    cost.linear(width, 32064, tokens, False)
    cost.cut("whole model", actions * 32064)
    header = f"""
OpenVLA, about 7 billion parameters ({cost.weights / 1e9:.2f} billion by this count).
Sizes: "OpenVLA: An Open-Source Vision-Language-Action Model" (Kim and others, 2024): DINOv2 and SigLIP
features of 256 patches side by side, a projector, Llama 2 with 7 billion parameters, 7 action tokens,
adapters of rank 32 on all linear layers (LoRA, Hu and others, 2021). "DINOv2: Learning Robust Visual
Features without Supervision" (Oquab and others, 2023): ViT-L/14 (24 layers, width 1024). "Sigmoid Loss
for Language Image Pre-Training" (Zhai and others, 2023) in its shape-optimised size SO400M (27 layers, width 1152,
feed-forward 4304). "Llama 2: Open Foundation and Fine-Tuned Chat Models" (Touvron and others, 2023): 32
layers, width 4096, feed-forward 11008. "Prismatic VLMs" (Karamcheti and others, 2024): three linear layers
in the projector. Here: one camera, {text} tokens of instruction, minibatches of {cost.batch}.
{HOW}"""
    return cost.text(header)


def main():
    check = "--check" in sys.argv[1:]
    wrong = []
    for name, text in (("smolvla", smolvla()), ("openvla", openvla())):
        path = FOLDER / f"{name}.csv"
        if check:
            if not path.exists() or path.read_text() != text:
                wrong.append(path.name)
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if wrong:
        sys.exit(f"differs from what tools/profile/tables.py writes: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
