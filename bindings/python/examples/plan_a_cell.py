"""A plan for one round of a cell of your own, and what else could be done."""

import tilp

# Your limits; everything else is as in the scenario. A base station fills in what it has measured.
own = {"limits.deadline_s": 3.0, "limits.bandwidth_hz": 20e6, "cell.n_terminals": 3}
observation = {
    "round": 1,
    "clock_s": 0.0,
    "aggregates": False,
    "terminals": [
        {
            "gain_db": gain_db,
            "fading_power": fading_power,
            "previous_bandwidth_hz": 0.0,
            "n_samples": 300,
            "memory_bytes": 8_000_000,
            "task": task,
            "held_layers": 0,
            "owed_layers": 0,
        }
        for gain_db, fading_power, task in [(-95.0, 1.2, "push"), (-110.0, 0.6, "bin"), (-128.0, 0.1, "push")]
    ],
}

plan = tilp.plan(observation, "tiny", set=own)
for one in plan["terminals"]:
    print(f"terminal {one['terminal']}: scheduled {one['scheduled']}: {one['why']}")

# TiLP's twin predicts decisions of your own: all terminals at each cut.
twin = tilp.Twin.from_scenario("tiny", set=own)
cuts = [2, 3, 4, 5, 6]
tried = tilp.Decision.idle(3, batch=len(cuts))
tried.scheduled[:] = True
tried.bandwidth_hz[:] = 20e6 / 3
tried.power_w[:] = 0.2
tried.compression[:] = 0.9
for n, cut in enumerate(cuts):
    tried.cut[n] = cut
found = twin.predict(observation, tried)
for n, cut in enumerate(cuts):
    print(f"everybody at cut {cut}: {found.latency_s[n]:.2f} s, {found.energy_j[n]:.2f} J, reward {found.reward[n]:.3f}")
