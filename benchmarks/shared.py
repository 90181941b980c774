"""How generation holds up on a shared machine: idle, and beside other busy processes.

    python benchmarks/shared.py [-n 32] [--busy 0 1 2] [--rounds 3]

Each measurement is a process of its own that loads the packaged model, generates a few windows and
then times n. Busy processes compute in one thread each. Threads that wait for each other spin
before they sleep: long by default in GNU's OpenMP, briefly (`GOMP_SPINCOUNT=2000`, which the
command sets), or not at all (`OMP_WAIT_POLICY=PASSIVE`). Prints the median of the rounds in
seconds, and its ratio to the default on idle cores.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

TIMED = """
import sys, time
import gazediffusion as gd
model, n = gd.load("default"), int(sys.argv[1])
model.sample(4)
begun = time.perf_counter()
model.sample(n, seed=1)
print(time.perf_counter() - begun)
"""
POLICIES: dict[str, dict[str, str]] = {
    "long": {},
    "briefly": {"GOMP_SPINCOUNT": "2000"},
    "not at all": {"OMP_WAIT_POLICY": "PASSIVE"},
}


def seconds(n: int, policy: dict[str, str]) -> float:
    """Of n windows in a process of its own."""
    unset = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | policy
    done = subprocess.run(
        [sys.executable, "-c", TIMED, str(n)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=32)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    found: dict[tuple[str, int], float] = {}
    for n_busy in given.busy:
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_busy)]
        try:
            for name, policy in POLICIES.items():
                times = [seconds(given.n, policy) for _ in range(given.rounds)]
                found[name, n_busy] = statistics.median(times)
        finally:
            for process in busy:
                process.kill()
                process.wait()
    print(f"{given.n} windows, {os.cpu_count()} cores, median of {given.rounds}\n")
    print("| threads spin | busy processes | s | relative to idle |\n|---|---:|---:|---:|")
    for (name, n_busy), time in found.items():
        relative = time / found["long", given.busy[0]]
        print(f"| {name} | {n_busy} | {time:.2f} | {relative:.2f} |")


if __name__ == "__main__":
    main()
