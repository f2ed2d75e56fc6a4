"""The exported model in onnxruntime, and the table that the program makes of it."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from policy_actions import actions

#: Cut of `tiny`'s policy, counted from 1, by the value behind it.
CUTS = {1: "layer1.output", 2: "layer2.sum", 3: "layer3.merged", 5: "layer5.merged", 7: "layer7.sum"}


def check_actions() -> None:
    model = onnx.load("policy.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession("policy.onnx", providers=["CPUExecutionProvider"])
    (width,) = session.get_inputs()[0].shape[1:]
    states = np.random.default_rng(0).uniform(-1.5, 1.5, (300, width)).astype(np.float32)
    (own,) = session.run(["action"], {"state": states})
    theirs = actions("run/model.safetensors", states)
    difference = float(np.abs(own - theirs).max())
    assert difference < 2e-5, difference
    (one,) = session.run(["action"], {"state": states[:1]})
    assert np.abs(one - own[:1]).max() < 1e-5
    print(f"{len(states)} states: largest difference of an action {difference:.1e}, of {np.abs(theirs).max():.2f}")


def check_table() -> None:
    """Products of matrices of a layer, counted by hand from the shapes of the weights in the file."""
    lines = [line for line in Path("model.csv").read_text().splitlines() if not line.startswith("#")]
    table = {row["name"]: row for row in csv.DictReader(lines)}
    model = onnx.load("policy.onnx")
    weights = [one for one in model.graph.initializer if one.data_type == onnx.TensorProto.FLOAT]
    shapes = {one.name: list(one.dims) for one in weights if one.dims}
    sizes = {
        one.name: [axis.dim_value or 1 for axis in one.type.tensor_type.shape.dim]
        for one in [*model.graph.value_info, *model.graph.input, *model.graph.output]
    }
    products, parameters = 0, 0
    for node in model.graph.node:
        for name in node.input:
            # Whole numbers are sizes and places, and a single number is a setting.
            parameters += int(np.prod(shapes.pop(name, [0])))
        if node.op_type in ("MatMul", "Gemm"):
            products += int(np.prod(sizes[node.output[0]])) * sizes[node.input[0]][-1]
        for name in node.output:
            if name in table:
                row = table[name]
                assert int(row["operations"]) == 6 * products, (name, row, products)
                assert int(row["trained_parameters"]) == parameters, (name, row, parameters)
                assert int(row["activation_elements"]) == int(np.prod(sizes[name])), name
    missing = [name for name in CUTS.values() if name not in table]
    assert not missing, missing
    print(f"table: {len(table)} cuts, among them {', '.join(CUTS.values())}")


def table_of(*arguments: str) -> list[dict[str, str]]:
    command = [os.environ["TILP"], "profile", *arguments]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(text.splitlines()[1:]))


def check_sizes() -> None:
    """A dimension with a name needs its size."""
    number = onnx.TensorProto.FLOAT
    weight = onnx.numpy_helper.from_array(np.zeros((4, 6), np.float32), "w")
    nodes = [onnx.helper.make_node("MatMul", ["words", "w"], ["scores"])]
    words = onnx.helper.make_tensor_value_info("words", number, ["n", "length", 4])
    scores = onnx.helper.make_tensor_value_info("scores", number, ["n", "length", 6])
    graph = onnx.helper.make_graph(nodes, "words", [words], [scores], [weight])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), "words.onnx")
    refused = subprocess.run([os.environ["TILP"], "profile", "words.onnx"], capture_output=True, text=True)
    assert refused.returncode == 2 and "--size length=NUMBER" in refused.stderr, refused.stderr
    (row,) = table_of("words.onnx", "--size", "length=5")
    assert (int(row["operations"]), int(row["activation_elements"])) == (6 * 5 * 6 * 4, 30), row
    print("sizes: a named dimension is refused without its size")


def check_convolutions() -> None:
    """A small network of another kind, with shapes by ONNX's own inference; its costs by hand."""
    number = onnx.TensorProto.FLOAT
    shapes = {"w1": [8, 3, 3, 3], "b1": [8], "w2": [4, 8, 1, 1], "w3": [4, 10], "b3": [10]}
    constants = [onnx.numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in shapes.items()]
    make = onnx.helper.make_node
    nodes = [
        make("Conv", ["picture", "w1", "b1"], ["first"], pads=[1, 1, 1, 1]),
        make("Relu", ["first"], ["open"]),
        make("Conv", ["open", "w2"], ["second"]),
        make("GlobalAveragePool", ["second"], ["mean"]),
        make("Flatten", ["mean"], ["flat"]),
        make("Gemm", ["flat", "w3", "b3"], ["scores"]),
    ]
    picture = onnx.helper.make_tensor_value_info("picture", number, ["n", 3, 16, 16])
    scores = onnx.helper.make_tensor_value_info("scores", number, ["n", 10])
    graph = onnx.helper.make_graph(nodes, "pictures", [picture], [scores], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(onnx.shape_inference.infer_shapes(model), "pictures.onnx")
    rows = table_of("pictures.onnx", "--batch", "2", "--optimiser", "momentum")
    first, second = 16 * 16 * 8 * 27, 16 * 16 * 4 * 8
    kept = [2 * 16 * 16 * 8, 2 * 16 * 16 * 8 + 16 * 16 * 4 + 4]
    parameters = [8 * 27 + 8, 8 * 27 + 8 + 32]
    found = [(row["name"], int(row["operations"]), int(row["trained_parameters"]), int(row["memory_bytes"])) for row in rows[:2]]
    expected = [
        ("open", 6 * first, parameters[0], 4 * (3 * parameters[0] + 2 * kept[0])),
        ("mean", 6 * (first + second), parameters[1], 4 * (3 * parameters[1] + 2 * kept[1])),
    ]
    assert found == expected, (found, expected)
    print(f"convolutions: {len(rows)} cuts as computed by hand")


if __name__ == "__main__":
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
    check_actions()
    check_table()
    check_sizes()
    check_convolutions()
