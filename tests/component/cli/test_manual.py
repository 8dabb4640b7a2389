#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual pages and completions that are installed: well formed, complete, and understood by the real shells."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ["EB_TEST_BUILD_ROOT"]
SOURCE = os.environ["EB_TEST_SOURCE_ROOT"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "lib"))
import tap  # noqa: E402

DATA = os.path.join(BUILD, "data")


def run(argv, **kwargs):
    return subprocess.run(argv, text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL, **kwargs)


def commands():
    text = run([os.path.join(BUILD, "errand-box"), "--help"]).stdout
    block = text.split("commands:\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^  ([a-z]+) ", block, re.M)


def options_of(command):
    text = run([os.path.join(BUILD, "errand-box"), command, "--help"]).stdout
    own = text.split("\noptions:\n", 1)
    return re.findall(r"^ +(?:-., )?(--[a-z-]+)", own[1].split("\n\n", 1)[0], re.M) if len(own) == 2 else []


def need(test, program):
    if shutil.which(program) is None:
        test.skipTest(f"{program} is not installed")


class Manual(unittest.TestCase):
    def pages(self):
        static = os.path.join(SOURCE, "data", "man")
        return [os.path.join(DATA, name) for name in ("errand-box.1", "errand-box.toml.5")] + \
               [os.path.join(static, name) for name in sorted(os.listdir(static))]

    def test_roff(self):
        need(self, "mandoc")
        for page in self.pages():
            result = run(["mandoc", "-T", "lint", "-W", "error", page])
            self.assertEqual((result.returncode, result.stdout), (0, ""), page)

    def test_every_command_and_option_is_there(self):
        need(self, "mandoc")
        text = run(["mandoc", "-T", "utf8", os.path.join(DATA, "errand-box.1")]).stdout
        text = re.sub(r".\x08", "", text).replace("\u2010", "-").replace("\u2212", "-")
        self.assertGreater(len(commands()), 10)
        for command in commands():
            self.assertRegex(text, rf"(?m)^   {command}$")
            for option in options_of(command):
                self.assertIn(option, text)

    def test_every_key_is_there(self):
        need(self, "mandoc")
        text = run(["mandoc", "-T", "ascii", os.path.join(DATA, "errand-box.toml.5")]).stdout
        text = re.sub(r".\x08", "", text)
        schema = run([os.path.join(BUILD, "errand-box"), "config", "schema"]).stdout
        for key in ("accept_degraded", "max_live_sessions", "base_url"):
            self.assertIn(key, schema)
            self.assertIn(key, text)


class Completion(unittest.TestCase):
    def bash(self, *words):
        script = f"source {os.path.join(DATA, 'errand-box')}\n" \
                 "COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _errand_box; printf '%s\\n' \"${COMPREPLY[@]}\""
        result = run(["bash", "-c", script, "bash", "errand-box", *words], cwd=SOURCE)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.split()

    def test_bash(self):
        self.assertEqual(sorted(self.bash("")), sorted(commands()))
        self.assertEqual(self.bash("docto"), ["doctor"])
        self.assertIn("--strict", self.bash("doctor", "--"))
        self.assertIn("--json", self.bash("doctor", "--"))
        self.assertIn("prune", self.bash("sessions", ""))
        self.assertIn("pins.toml", self.bash("--config", "pins"))
        self.assertEqual(self.bash("--config", "pins.toml", "docto"), ["doctor"])
        self.assertIn("pins.toml", self.bash("setup", "--creds", "pins"))
        self.assertIn("pins.toml", self.bash("plugin", "check", "pins"))
        self.assertEqual(self.bash("no-such-command", ""), [])

    def test_zsh(self):
        need(self, "zsh")
        result = run(["zsh", "-n", os.path.join(DATA, "_errand-box")])
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_fish(self):
        need(self, "fish")
        home = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        place = tempfile.TemporaryDirectory()  # it keeps a history and more
        self.addCleanup(place.cleanup)
        home["HOME"] = place.name
        source = f"source {os.path.join(DATA, 'errand-box.fish')}; complete -C "
        found = run(["fish", "--no-config", "-c", source + "'errand-box docto'"], env=home)
        self.assertEqual(found.stdout.split("\t")[0], "doctor", found.stderr)
        found = run(["fish", "--no-config", "-c", source + "'errand-box doctor --stri'"], env=home)
        self.assertEqual(found.stdout.split("\t")[0], "--strict", found.stderr)


if __name__ == "__main__":
    tap.main(__name__)
