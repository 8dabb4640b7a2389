#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every agent of data/agents in a real guest: one turn that writes a file, runs a command and asks where the agent
asks, against the model stand-in, through the broker. Prints TAP; a table of what was seen goes to stderr.

    EB_BUILD=build tests/agents/run.py [AGENT...]

The image is one that has all of them (`errand-box image build --agents ...`), kept in the image cache.
"""

import os
import pathlib
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import harness  # noqa: E402

# Why a profile cannot be run from here.
NOT_RUN = {
    "kage": "no pinned package: it is a Rust program that is not on npm",
    "generic": "it is no agent, but a profile for any",
}
# These act without a question: their permissions are settings of the agent which the profile leaves off.
SILENT = {"codex-acp"}
WORDS = "Hello-from-the-guest"
PROMPT = (f"@mock write /workspace/hello.txt {WORDS}\n"
          "@mock shell cat /workspace/hello.txt > /workspace/copy.txt; echo >> /workspace/copy.txt; id -u >> /workspace/copy.txt\n@mock say all done")


def profiles():
    for path in sorted((ROOT / "data" / "agents").glob("*.toml")):
        with open(path, "rb") as file:
            yield path.stem, tomllib.load(file)


def pinned():
    with open(ROOT / "pins.toml", "rb") as file:
        return tomllib.load(file)["npm"]


def complaints(world, agent, run, seen):
    """What is wrong with this turn, one line each."""
    wrong = []
    if run.code != 0 or not run.end or run.end.get("stop_reason") != "end_turn":
        return [f"the turn did not end well: {run.end}"]
    project = world.project(f"turn-{agent}")
    written = project / "hello.txt"
    copied = project / "copy.txt"
    if not written.exists() or written.read_text(encoding="utf-8").strip() != WORDS:
        wrong.append("the agent's own tool did not write the file")
    if not copied.exists() or copied.read_text(encoding="utf-8").split() != [WORDS, "1000"]:
        wrong.append("the command did not run as the guest's uid 1000")
    if "all done" not in run.text():
        wrong.append("the model's text did not arrive")
    asked = [event for event in run.events if event["event"] == "permission" and "options" in event]
    if bool(asked) == (agent in SILENT):
        wrong.append("it asked" if asked else "it asked nothing")
    requests = world.model.requests()[seen:]
    if not requests:
        wrong.append("nothing reached the model provider")
    if any(row.get("auth_header") and not row["key_ok"] for row in requests):
        wrong.append("a request carried another key than the provider's")
    if not harness.wait_until(lambda: not world.instances()):
        wrong.append(f"left behind: {world.instances()}")
    return wrong


def one_turn(world, agent, provider):
    seen = len(world.model.requests())
    world.write_config(providers=(provider,))
    run = harness.Try(world, PROMPT, "--agent", agent, "--project", f"turn-{agent}", answer=harness.allow).wait(300)
    return run, complaints(world, agent, run, seen)


def provider_for(profile):
    """The stand-in's kind that the profile's first dialect needs."""
    return profile["dialects"][0].split("-", 1)[0]


def main():
    reason = harness.skip_reason()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    pins = pinned()
    known = [(name, profile) for name, profile in profiles() if not sys.argv[1:] or name in sys.argv[1:]]
    programs = [profile["npm"] for name, profile in profiles() if profile.get("npm") in pins]
    world = harness.World()
    failed = number = 0
    print(f"1..{len(known)}", flush=True)
    try:
        world.setup()
        built = world.run("image", "build", "--agents", ",".join(programs), timeout=1800)
        if built.returncode != 0:
            print(f"Bail out! image build: {built.stderr[-2000:]!r}")
            return 1
        for name, profile in known:
            number += 1
            if name in NOT_RUN:
                print(f"ok {number} - {name} # SKIP {NOT_RUN[name]}", flush=True)
                continue
            start = time.monotonic()
            run, wrong = one_turn(world, name, provider_for(profile))
            failed += bool(wrong)
            print(f"{'not ok' if wrong else 'ok'} {number} - {name} ({time.monotonic() - start:.1f} s)")
            for line in [*wrong, *run.describe().splitlines()] if wrong else []:
                print(f"# {line[:400]}")
            sys.stdout.flush()
            kinds = [event["event"] for event in run.events]
            harness.log(f"{name} {pins[profile['npm']]['version']} {profile['dialects'][0]}: asked "
                        f"{sum(1 for e in run.events if e['event'] == 'permission' and 'options' in e)}, tools "
                        f"{kinds.count('tool')}, ms {run.end.get('ms') if run.end else None}")
    finally:
        world.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
