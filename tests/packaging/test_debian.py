#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the Debian packages with dpkg-buildpackage, from a copy of the commit, and looks at what is in them."""

import glob
import os
import shutil
import subprocess
import sys
import unittest

BUILD = os.environ["EB_TEST_BUILD_ROOT"]
SOURCE = os.environ["EB_TEST_SOURCE_ROOT"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "lib"))
import tap  # noqa: E402

OUT = os.path.join(BUILD, "deb")


def run(argv, **kwargs):
    return subprocess.run(argv, text=True, capture_output=True, timeout=540, stdin=subprocess.DEVNULL, **kwargs)


def contents(package):
    """{path: (mode, owner)} of a package."""
    listing = run(["dpkg-deb", "-c", package], env={**os.environ, "LC_ALL": "C"}).stdout
    rows = [line.split(None, 5) for line in listing.splitlines()]
    return {row[5].split(" -> ")[0].lstrip("."): (row[0], row[1]) for row in rows}


class Debian(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("dpkg-buildpackage", "dh", "lintian"):
            if shutil.which(program) is None:
                raise unittest.SkipTest(f"{program} is not installed")
        built = run([os.path.join(SOURCE, "tools", "build-deb"), OUT])
        if built.returncode != 0:
            raise AssertionError(built.stderr)
        cls.packages = {os.path.basename(path).split("_")[0]: path for path in glob.glob(os.path.join(OUT, "*.deb"))}
        cls.files = contents(cls.packages["errand-box"])

    def test_three_packages(self):
        self.assertLessEqual({"errand-box", "liberrandbox-plugin-1-0", "liberrandbox-plugin-1-dev"}, set(self.packages))

    def test_lintian_has_no_error(self):
        found = run(["lintian", "--allow-root", "--fail-on", "error",
                     *(path for name, path in self.packages.items() if "dbgsym" not in name)])
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)

    def test_everything_is_in_it(self):
        names = "\n".join(self.files)
        for path in ("/usr/bin/errand-box", "/usr/bin/errand-boxd", "/usr/libexec/errand-box/errand-box-broker",
                     "/usr/libexec/errand-box/guest/launch", "/usr/libexec/errand-box/guest/relay",
                     "/usr/libexec/errand-box/guest/init", "/usr/share/errand-box/pins.toml",
                     "/usr/share/errand-box/guest/image/recipe.toml", "/usr/share/man/man1/errand-box.1.gz",
                     "/usr/share/man/man5/errand-box.toml.5.gz", "/usr/share/man/man8/errand-boxd.8.gz",
                     "/usr/share/bash-completion/completions/errand-box", "/usr/share/zsh/site-functions/_errand-box",
                     "/usr/share/fish/vendor_completions.d/errand-box.fish",
                     "/usr/lib/systemd/system/errand-boxd.service",
                     "/usr/lib/systemd/system/errand-box-watchdog.service", "/usr/lib/tmpfiles.d/errand-box.conf",
                     "/usr/lib/sysusers.d/errand-box.conf"):
            self.assertIn(path, self.files, names)
        for plugin in os.listdir(os.path.join(SOURCE, "plugins")):
            if os.path.isdir(os.path.join(SOURCE, "plugins", plugin)):
                self.assertRegex(names, rf"/errand-box/plugins/{plugin}/{plugin}\.so")
                self.assertRegex(names, rf"/errand-box/plugins/{plugin}/{plugin}\.plugin")

    def test_nobody_else_may_write_and_nothing_is_set_uid(self):
        for path, (mode, owner) in self.files.items():
            self.assertEqual(owner, "root/root", path)
            self.assertNotRegex(mode, "[sS]", path)
            if not mode.startswith("l"):
                self.assertEqual((mode[5], mode[8]), ("-", "-"), f"{path} {mode}")

    def test_it_holds_nothing_of_the_build(self):
        work = os.path.join(BUILD, "deb-tree")
        shutil.rmtree(work, ignore_errors=True)
        self.assertEqual(run(["dpkg-deb", "-x", self.packages["errand-box"], work]).returncode, 0)
        try:
            for place in (SOURCE, BUILD):
                found = run(["grep", "-rlaF", place, work])
                self.assertEqual(found.stdout, "", f"{place} stands in these files")
        finally:
            shutil.rmtree(work)

    def test_the_copy_is_gone(self):
        self.assertFalse(os.path.exists(os.path.join(SOURCE, "debian")))


if __name__ == "__main__":
    tap.main(__name__)
