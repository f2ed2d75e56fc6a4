"""Properties of a comparison of two run folders."""

import csv
import json
import math
import struct
import tempfile
import unittest
from pathlib import Path

import pyarrow
import pyarrow.parquet

import compare

ROUNDS = {"round": [1, 2], "clock_s": [0.5, 1.25], "aggregated": ["false", "true"], "report_success": ["", 0.75]}
TERMINALS = {
    "round": [1, 1, 2, 2], "terminal": [0, 1, 0, 1], "scheduled": [True, False, True, True],
    "bandwidth_hz": [1e6, 0.0, 2e6, 3e6], "loss": [0.5, math.nan, 0.25, 0.125],
}
SUMMARY = {
    "rounds": 2, "success_final": 0.75, "rta": {"0.6": 2, "0.8": None},
    "success_curve": [[0, 0.25], [2, 0.75]],
}
MODEL = {"layer1.bias": [0.5, 0.25], "layer1.weight": [1.0, -2.0, 3.0, 0.0]}


def copy_of(data):
    """A deep copy that keeps NaN."""
    return json.loads(json.dumps(data))


def write_run(folder, rounds=ROUNDS, terminals=TERMINALS, summary=SUMMARY, model=MODEL):
    folder.mkdir(exist_ok=True)
    with (folder / "rounds.csv").open("w", newline="") as file:
        csv.writer(file).writerows([rounds, *zip(*rounds.values())])
    pyarrow.parquet.write_table(pyarrow.table(terminals), folder / "terminals.parquet")
    (folder / "summary.json").write_text(json.dumps(summary))
    header, body = {"__metadata__": {"note": folder.name}}, b""
    for name, values in model.items():
        data = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)


class Compare(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.old, self.new = Path(scratch.name) / "old", Path(scratch.name) / "new"
        write_run(self.old)
        write_run(self.new)

    def compare(self, rename=(), **changed):
        if changed:
            write_run(self.new, **changed)
        return compare.folders(self.old, self.new, dict(rename))

    def assert_differs(self, expected, result):
        self.assertEqual(result.verdict, "differs")
        self.assertIn(f"differs: {expected};", result.line())

    def test_equal_runs_are_the_same(self):
        result = self.compare()
        self.assertEqual((result.verdict, result.line(), result.one_sided), ("same", "same", {}))

    def test_a_changed_value_of_a_terminal_is_found_with_round_terminal_and_column(self):
        changed = copy_of(TERMINALS)
        changed["bandwidth_hz"][3] = math.nextafter(3e6, math.inf)
        self.assert_differs("terminals.parquet round 2 terminal 1 bandwidth_hz: 3000000.0 -> 3000000.0000000005",
                            self.compare(terminals=changed))

    def test_a_changed_flag_of_a_terminal_is_found(self):
        changed = copy_of(TERMINALS)
        changed["scheduled"][1] = True
        self.assert_differs("terminals.parquet round 1 terminal 1 scheduled: False -> True",
                            self.compare(terminals=changed))

    def test_a_value_in_place_of_nan_is_found(self):
        changed = copy_of(TERMINALS)
        changed["loss"][1] = 0.5
        self.assert_differs("terminals.parquet round 1 terminal 1 loss: nan -> 0.5", self.compare(terminals=changed))

    def test_a_changed_value_of_a_round_is_found(self):
        changed = copy_of(ROUNDS)
        changed["clock_s"][1] = 1.5
        result = self.compare(rounds=changed)
        self.assert_differs("rounds.csv round 2 clock_s: 1.25 -> 1.5", result)
        change, place = result.changes["rounds.csv"]
        self.assertAlmostEqual(change, 0.25 / 1.5)
        self.assertEqual(place, "round 2 clock_s")

    def test_a_value_in_place_of_an_empty_cell_is_found(self):
        changed = copy_of(ROUNDS)
        changed["report_success"][0] = 0.5
        self.assert_differs("rounds.csv round 1 report_success: None -> 0.5", self.compare(rounds=changed))

    def test_the_sign_of_zero_counts(self):
        changed = copy_of(TERMINALS)
        changed["bandwidth_hz"][1] = -0.0
        self.assert_differs("terminals.parquet round 1 terminal 1 bandwidth_hz: 0.0 -> -0.0",
                            self.compare(terminals=changed))

    def test_the_way_a_number_is_written_does_not_count(self):
        rounds, terminals = copy_of(ROUNDS), copy_of(TERMINALS)
        rounds["round"], rounds["clock_s"] = ["1.0", "2.0"], ["5e-1", "1.250"]
        terminals["terminal"] = [float(id_) for id_ in terminals["terminal"]]
        self.assertEqual(self.compare(rounds=rounds, terminals=terminals).verdict, "same")

    def test_the_earliest_round_is_reported_whichever_file_holds_it(self):
        rounds, terminals = copy_of(ROUNDS), copy_of(TERMINALS)
        rounds["clock_s"][0], terminals["loss"][2] = 0.75, 0.5
        self.assert_differs("rounds.csv round 1 clock_s: 0.5 -> 0.75", self.compare(rounds=rounds, terminals=terminals))

    def test_missing_rows_are_found(self):
        shorter = {name: values[:3] for name, values in TERMINALS.items()}
        self.assert_differs("terminals.parquet number of rows: 4 -> 3", self.compare(terminals=shorter))
        self.assert_differs("rounds.csv number of rows: 2 -> 1",
                            self.compare(rounds={name: values[:1] for name, values in ROUNDS.items()}))

    def test_a_changed_metric_is_found_and_the_change_of_success_is_told(self):
        result = self.compare(summary={**SUMMARY, "success_final": 0.5})
        self.assert_differs("summary.json success_final: 0.75 -> 0.5", result)
        self.assertIn("success_final 0.75 -> 0.5 (-0.25)", result.line())

    def test_a_changed_point_of_the_success_curve_is_found(self):
        self.assert_differs("summary.json success_curve[1][1]: 0.75 -> 0.5",
                            self.compare(summary={**SUMMARY, "success_curve": [[0, 0.25], [2, 0.5]]}))
        longer = SUMMARY["success_curve"] + [[4, 1.0]]
        self.assertEqual(self.compare(summary={**SUMMARY, "success_curve": longer}).verdict, "differs")

    def test_a_nested_metric_that_turns_null_is_found(self):
        self.assert_differs("summary.json rta.0.6: 2 -> None",
                            self.compare(summary={**SUMMARY, "rta": {"0.6": None, "0.8": None}}))

    def test_one_bit_of_the_model_is_found(self):
        changed = {**MODEL, "layer1.weight": [1.0, -2.0, 3.0, -0.0]}
        self.assert_differs("model.safetensors layer1.weight[3]: 0.0 -> -0.0", self.compare(model=changed))

    def test_a_changed_weight_is_measured_against_the_largest(self):
        result = self.compare(model={**MODEL, "layer1.weight": [1.0, -2.0, 4.0, 0.0]})
        self.assert_differs("model.safetensors layer1.weight[2]: 3.0 -> 4.0", result)
        self.assertEqual(result.changes["model.safetensors"], (0.25, "layer1.weight"))

    def test_a_tensor_of_another_shape_or_on_one_side_only_is_a_difference(self):
        self.assert_differs("model.safetensors layer1.bias: F32 [2] -> F32 [1]",
                            self.compare(model={**MODEL, "layer1.bias": [0.5]}))
        self.assert_differs("model.safetensors layer2.bias: absent -> present",
                            self.compare(model={**MODEL, "layer2.bias": [0.5]}))

    def test_columns_and_metrics_on_one_side_only_are_listed_and_no_failure(self):
        terminals = {**TERMINALS, "id": [7, 8, 7, 8]}
        rounds = {name: values for name, values in ROUNDS.items() if name != "aggregated"}
        summary = {**SUMMARY, "rta": {"0.6": 2, "0.7": 2, "0.8": None}}
        result = self.compare(terminals=terminals, rounds=rounds, summary=summary)
        self.assertEqual(result.verdict, "same")
        self.assertEqual(result.one_sided, {
            ("terminals.parquet", "new"): ["id"], ("rounds.csv", "old"): ["aggregated"],
            ("summary.json", "new"): ["rta.0.7"],
        })

    def test_a_renamed_column_is_compared_under_its_new_name(self):
        rename = {"bandwidth_hz": "spectrum_hz", "rounds": "n_rounds", "layer1.bias": "embed.bias"}
        changed = {rename.get(name, name): values for name, values in copy_of(TERMINALS).items()}
        summary = {rename.get(name, name): value for name, value in SUMMARY.items()}
        model = {rename.get(name, name): values for name, values in MODEL.items()}
        result = self.compare(rename, terminals=changed, summary=summary, model=model)
        self.assertEqual((result.verdict, result.one_sided), ("same", {}))
        changed["spectrum_hz"][0] = 5e5
        self.assert_differs("terminals.parquet round 1 terminal 0 spectrum_hz: 1000000.0 -> 500000.0",
                            self.compare(rename, terminals=changed))

    def test_a_file_that_keeps_the_old_name_is_compared_under_it(self):
        rounds = {**ROUNDS, "loss": [0.5, 0.25]}
        write_run(self.old, rounds=rounds)
        renamed = {("training_loss" if name == "loss" else name): values for name, values in rounds.items()}
        changed = copy_of(TERMINALS)
        changed["loss"][0] = 1.0
        result = self.compare({"loss": "training_loss"}, rounds=renamed, terminals=changed)
        self.assert_differs("terminals.parquet round 1 terminal 0 loss: 0.5 -> 1.0", result)
        self.assertEqual(result.one_sided, {})

    def test_a_missing_file_is_a_failure(self):
        for file in compare.FILES:
            with self.subTest(file):
                write_run(self.new)
                (self.new / file).unlink()
                result = self.compare()
                self.assertEqual(result.verdict, "failed")
                self.assertIn(f"{file} is missing in the new run", result.line())

    def test_a_file_that_cannot_be_read_is_a_failure(self):
        for file in compare.FILES:
            with self.subTest(file):
                write_run(self.new)
                (self.new / file).write_bytes(b"\xff" * 40)
                result = self.compare()
                self.assertEqual(result.verdict, "failed")
                self.assertIn(f"{file} cannot be compared", result.line())


if __name__ == "__main__":
    unittest.main()
