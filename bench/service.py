#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The service at rest and the command line's own cost.

Prints a table of medians: the wall time of `errand-box version` (a command that does nothing) next to `true` in the same
interleaved rounds, of `errand-box doctor`, and the resident memory of an idle `errand-box serve`. With CONFIG on a host
that `errand-box setup` has prepared; without it on a private incusd that is set up for it and taken away.

    bench/service.py BUILD-DIRECTORY [CONFIG]
"""

import importlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 15


def wall(argv):
    start = time.perf_counter()
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return (time.perf_counter() - start) * 1000


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    program = str(build / "errand-box")
    if len(sys.argv) > 2:
        measure(program, ["--config", sys.argv[2]])
        return
    os.environ["EB_BUILD"] = str(build)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "e2e"))
    harness = importlib.import_module("harness")
    world = harness.World()
    try:
        world.setup()
        os.environ.update(world.env)
        measure(program, ["--config", world.config])
    finally:
        world.close()


def measure(program, config):
    commands = {"true": ["/bin/true"], "errand-box version": [program, "version"],
                "errand-box doctor": [program, *config, "doctor"]}
    samples = {name: [] for name in commands}
    for number in range(ROUNDS):
        order = list(commands) if number % 2 == 0 else list(commands)[::-1]
        for name in order:
            samples[name].append(wall(commands[name]))
    floor = statistics.median(samples["true"])
    print(f"| what | median ms | ÷ true |\n|---|---|---|")
    for name, values in samples.items():
        middle = statistics.median(values)
        print(f"| `{name}` | {middle:.1f} | {middle / floor:.1f} |")
    with tempfile.TemporaryFile() as out:
        service = subprocess.Popen([program, *config, "serve"], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            for _ in range(100):
                if subprocess.run([program, *config, "status"], capture_output=True, check=False).returncode == 0:
                    break
                time.sleep(0.1)
            else:
                out.seek(0)
                sys.exit("serve does not answer: " + out.read().decode(errors="replace")[-800:])
            time.sleep(3)
            print(f"\nidle service: {resident(service.pid):.1f} MiB resident")
        finally:
            service.terminate()
            service.wait(30)


if __name__ == "__main__":
    os.environ.setdefault("LANG", "C.UTF-8")
    main()
