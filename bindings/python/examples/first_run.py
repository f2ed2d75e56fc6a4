"""A first run: watch it, look at its tables, compare two methods."""

import numpy as np

import tilp


def show(row: dict[str, object]) -> None:
    print(f"round {row['round']}: {row['n_took_part']} took part in {row['duration_s']:.2f} s")


run = tilp.run("tiny", method="tilp", seed=0, on_round=show)
print(f"success {run.summary['success_final']:.2f} after {run.summary['clock_total_s']:.0f} simulated seconds")

# Columns are NumPy arrays. pyarrow.table(run.rounds) and polars.DataFrame(run.rounds) take the whole.
energy = run.rounds["energy_j"]
print(f"{energy.sum():.1f} J in all, {energy.max():.2f} J in the costliest round")
took_part, task = run.terminals["took_part"], np.array(run.terminals["task_name"])
for name in sorted(set(task)):
    print(f"{name}: took part {took_part[task == name].sum()} times")

study = tilp.compare("tiny", methods=["tilp", "random"], seeds=range(2))
print(study.table())
