#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs errand-box into a temporary directory, builds examples/doctor-hello there with nothing but the installed
pkg-config file, installs it, and hands over to the test program that loads it. Then the same with a credential store, and the
contract of stores as the author guide says to run it, against the store and against those that are shipped."""

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


def keeps_contract(env, stage, plugin, store, settings):
    """Whether the installed errand-box-store-test says so; its cases go to stderr."""
    with tempfile.TemporaryDirectory(prefix="ebt-store-", dir="/tmp") as state:
        file = os.path.join(state, "my.toml")
        pathlib.Path(file).write_text(settings.format(state), encoding="utf-8")
        plugins = str(find_one(stage, f"{plugin}.so").parent.parent)
        program = subprocess.run(["pkg-config", "--variable=libexecdir", "errand-box-plugin-1"], env=env, capture_output=True,
                                  text=True, check=True).stdout.strip()
        result = subprocess.run([os.path.join(program, "errand-box-store-test"), "--state-dir", state, "--settings", file, plugins,
                                 plugin, store], env=env, stdout=sys.stderr, stderr=sys.stderr, timeout=120, check=False)
    return result.returncode


def check_store(options, env, stage, work):
    """A third party's store, built out of the tree; False when the contract's cases do not judge it."""
    source = os.path.join(work, "bad-store")
    os.mkdir(source)
    for file in ("bad-store.c", "bad-store.plugin"):
        shutil.copy(os.path.join(options.store, file), source)
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "store-meson.build"), os.path.join(source, "meson.build"))
    build = os.path.join(work, "build-store")
    run(["meson", "setup", build, source, f"-Db_sanitize={options.sanitize}", "-Db_lundef=false"], env)
    run(["ninja", "-C", build], env)
    run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], env)
    codes = (keeps_contract(env, stage, "bad-store", "bad", ""),
             keeps_contract(env, stage, "credentials", "env-file", 'file = "{}/creds.env"\n'))
    print(f"# the contract of stores out of the tree: {codes}", file=sys.stderr)
    return codes == (1, 0)


def main():
    parser = argparse.ArgumentParser()
    for name in ("build", "example", "store", "sanitize", "program"):
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
        if not check_store(options, env, stage, work):
            print("Bail out! errand-box-store-test does not tell a store that keeps the contract from one that breaks it")
            return 1
        module = find_one(stage, "doctor-hello.so")
        env = dict(os.environ)
        env["EB_OOT_PLUGIN_DIR"] = str(module.parent.parent)
        env["EB_OOT_FIXTURES"] = os.path.join(example, "fixtures")
        return subprocess.run([options.program, "--tap"], env=env, timeout=120).returncode
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
