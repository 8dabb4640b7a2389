# SPDX-License-Identifier: MIT
"""What the tools/check-* programs share: the list of source files, C text without comments, the way of reporting and
of testing themselves on tools/tests/*.sample."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = "tools/tests/"


def tracked_files():
    """Paths below the root, with slashes; what git would keep, or everything when this is no clone."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                check=True, capture_output=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                  if not any(part.startswith((".git", "build")) for part in path.relative_to(ROOT).parts)]
    return sorted(path for path in listed if path and (ROOT / path).is_file() and not path.startswith(SAMPLES))


def read_text(path):
    """The text of a file, or None when it is none."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return None


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


_TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def without_comments(text):
    """C text with comments blanked; strings stay."""
    return _TOKEN.sub(lambda match: blank(match) if match.group(0)[0] == "/" else match.group(0), text)


def code_alone(text):
    """C text with comments and strings blanked, line numbers unchanged."""
    return _TOKEN.sub(blank, text)


class Finding:
    def __init__(self, path, line, rule, message):
        self.path, self.line, self.rule, self.message = path, line, rule, message

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message} [{self.rule}]"


def run(rules, check):
    """Checks the whole tree, or with --self-test the samples of @rules. @check(path, text) yields findings."""
    if sys.argv[1:] == ["--self-test"]:
        return self_test(rules, check)
    paths = sys.argv[1:] or tracked_files()
    findings = []
    for path in paths:
        text = read_text(path)
        if text is not None:
            findings.extend(check(path, text))
    for finding in findings:
        print(finding)
    print(f"{len(paths)} files, {len(findings)} findings")
    return 1 if findings else 0


def self_test(rules, check):
    """Each rule must find its own sample, and nothing else in it; clean samples are left alone."""
    failures = 0
    for rule in rules:
        samples = sorted((ROOT / SAMPLES).glob(f"{rule}*.sample"))
        if not samples:
            print(f"rule {rule} has no sample")
            failures += 1
        for sample in samples:
            first, _, text = sample.read_text(encoding="utf-8").partition("\n")
            found = {finding.rule for finding in check(first.removeprefix("@as "), text)}
            if found != {rule}:
                print(f"{sample.name}: found {sorted(found)}, expected {rule}")
                failures += 1
    for sample in sorted((ROOT / SAMPLES).glob("clean*.sample")):
        first, _, text = sample.read_text(encoding="utf-8").partition("\n")
        for finding in check(first.removeprefix("@as "), text):
            print(f"{sample.name}: {finding}")
            failures += 1
    print(f"{len(rules)} rules, {failures} failures")
    return 1 if failures else 0
