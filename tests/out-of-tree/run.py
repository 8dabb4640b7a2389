#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs errand-box into a temporary directory, builds examples/doctor-hello there with nothing but the installed
pkg-config file, installs it, and hands over to the test program that loads it."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(command, env):
    """Runs a command with its output on stderr: stdout belongs to TAP."""
    result = subprocess.run(command, env=env, stdout=sys.stderr, stderr=sys.stderr, timeout=120)
    if result.returncode != 0:
        print(f"Bail out! {' '.join(command)} failed with {result.returncode}")
        sys.exit(1)


def find_one(root, pattern):
    found = sorted(pathlib.Path(root).rglob(pattern))
    if not found:
        print(f"Bail out! no {pattern} below {root}")
        sys.exit(1)
    return found[0]


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "example", "sanitize", "program"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    os.umask(0o022)
    work = tempfile.mkdtemp(prefix="ebt-oot-", dir="/tmp")
    try:
        env = dict(os.environ)
        env.pop("LD_LIBRARY_PATH", None)
        stage = os.path.join(work, "stage")
        run(["meson", "install", "-C", options.build, "--no-rebuild", "--quiet"], env | {"DESTDIR": stage})
        pc = find_one(stage, "errand-box-plugin-1.pc")
        library = find_one(stage, "liberrandbox-plugin-1.so.0")
        env["PKG_CONFIG_PATH"] = str(pc.parent)
        env["LD_LIBRARY_PATH"] = str(library.parent)
        example = os.path.join(work, "doctor-hello")
        shutil.copytree(options.example, example)
        build = os.path.join(work, "build")
        run(["meson", "setup", build, example, f"-Db_sanitize={options.sanitize}", "-Db_lundef=false"], env)
        run(["ninja", "-C", build], env)
        run(["meson", "test", "-C", build, "--print-errorlogs"], env)
        run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], env)
        module = find_one(stage, "doctor-hello.so")
        env = dict(os.environ)
        env["EB_OOT_PLUGIN_DIR"] = str(module.parent.parent)
        env["EB_OOT_FIXTURES"] = os.path.join(example, "fixtures")
        return subprocess.run([options.program, "--tap"], env=env, timeout=120).returncode
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
