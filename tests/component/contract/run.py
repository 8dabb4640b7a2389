#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The contract of credential stores, run as a third party would: against the stores that are shipped, which keep all of
it, and against one that breaks it in every way that is looked for."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BROKEN = {"describe", "absent", "names", "put", "list", "shapes", "expiry", "durable", "parallel", "cancel", "changed",
          "remove"}


NUMBER = 0
FAILED = []


def check(name, passed):
    global NUMBER
    NUMBER += 1
    print(f"{'ok' if passed else 'not ok'} {NUMBER} - {name}", flush=True)
    if not passed:
        FAILED.append(name)


def run(options, work, plugin_dir, plugin, store, settings="", env=None):
    """The cases as {name: (passed, skipped)} and the exit code."""
    state = pathlib.Path(work, store)
    state.mkdir(mode=0o700)
    file = pathlib.Path(work, store + ".toml")
    file.write_text(settings.format(dir=state))
    result = subprocess.run([options.program, "--state-dir", str(state), "--settings", str(file), plugin_dir, plugin, store],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                            env=os.environ | (env or {}))
    print("\n".join("# " + line for line in (result.stdout + result.stderr).splitlines()))
    cases = {}
    for line in result.stdout.splitlines():
        match = re.match(r"(not )?ok \d+ ([a-z]+)( # SKIP .*)?$", line)
        if match:
            cases[match[2]] = (match[1] is None, match[3] is not None)
    return cases, result.returncode


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "plugins", "bad"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix="ebt-contract-", dir="/tmp")
    try:
        key = pathlib.Path(work, "key")
        key.write_bytes(os.urandom(32).hex().encode())
        key.chmod(0o600)
        handed = pathlib.Path(work, "handed")
        handed.mkdir(mode=0o700)
        pathlib.Path(handed, "errand-box.model-key").write_text("one that is there\n")
        pathlib.Path(handed, "errand-box.model-key").chmod(0o400)

        cases, code = run(options, work, options.plugins, "credentials", "env-file", 'file = "{dir}/creds.env"\n')
        check("env-file keeps the contract", code == 0 and len(cases) == len(BROKEN))
        check("but for expiry it skips nothing", {name for name, case in cases.items() if case[1]} == {"expiry"})
        cases, code = run(options, work, options.plugins, "credentials", "sealed", f'sealed_key_file = "{key}"\n')
        check("sealed keeps the contract", code == 0 and len(cases) == len(BROKEN))
        check("it skips nothing", not any(case[1] for case in cases.values()))
        cases, code = run(options, work, options.plugins, "credentials", "systemd",
                          env={"CREDENTIALS_DIRECTORY": str(handed)})
        check("systemd keeps the contract", code == 0 and len(cases) == len(BROKEN))
        modules = pathlib.Path(work, "modules")
        folder = modules / "bad-store"
        folder.mkdir(parents=True, mode=0o755)
        for file in (options.bad, pathlib.Path(options.bad).with_suffix(".plugin")):
            shutil.copy(file, folder)
        cases, code = run(options, work, str(modules), "bad-store", "bad")
        check("a store that breaks it is refused", code == 1)
        for name in sorted(BROKEN):
            check(f"what it breaks is found: {name}", cases.get(name) == (False, False))
        cases, code = run(options, work, options.plugins, "credentials", "no-such-store")
        check("a store that is not there is refused", code == 1)
        # Without its settings a store would put and remove where an operator's own values are.
        for name, text in (("gone.toml", None), ("broken.toml", "file = \n")):
            file = pathlib.Path(work, name)
            if text is not None:
                file.write_text(text)
            result = subprocess.run([options.program, "--state-dir", work, "--settings", str(file), options.plugins,
                                     "credentials", "env-file"], capture_output=True, text=True, timeout=120)
            check(f"settings that cannot be read open nothing: {name}",
                  result.returncode == 2 and result.stdout == "" and name in result.stderr)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"1..{NUMBER}")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
