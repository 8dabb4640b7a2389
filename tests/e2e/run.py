#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the end-to-end tests on one prepared world and prints TAP.

    EB_BUILD=build tests/e2e/run.py [NAME-PART...]
    EB_BUILD=build tests/e2e/run.py --group GROUP      one of GROUPS, or "rest": the files that no group names
"""

import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = [HERE, os.path.join(os.path.dirname(HERE), "hostile")]
sys.path[:0] = PLACES
import harness  # noqa: E402

# Each group prepares a world of its own, so that two can run at one time. The kills take longest and begin.
GROUPS = {
    "kills": ["test_selftest"],
    "chat": ["test_discord"],
    "hostile": ["test_guest_view", "test_hostile"],
}


class Tap(unittest.TestResult):
    """One line a test as soon as it is over; sub-tests count through their test."""

    def __init__(self, stream):
        super().__init__()
        self.stream, self.number, self.bad = stream, 0, set()

    def line(self, verdict, test, note=""):
        self.number += 1
        self.stream.write(f"{verdict} {self.number} - {test.id()}{note}\n")
        self.stream.flush()

    def diagnose(self, test, error):
        text = self._exc_info_to_string(error, test)
        self.stream.write("".join(f"# {line}\n" for line in text.splitlines()))

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        print(f"# [{time.strftime('%H:%M:%S')}] {test.id()}", file=sys.stderr, flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        # A test that stands for many: each of its rows is a point.
        rows = getattr(test, "rows", [])
        while rows:
            name, good = rows.pop(0)
            self.number += 1
            self.stream.write(f"{'ok' if good else 'not ok'} {self.number} - {name.replace('#', 'no. ')}\n")
        if test in self.bad:
            self.line("not ok", test)
        # Every guest of these tests has a planted key, and whoever sees it outside says so.
        for alarm in harness.alarms():
            self.failures.append((test, alarm))
            self.line("not ok", test, f": {alarm}")

    def addSuccess(self, test):
        super().addSuccess(test)
        if test not in self.bad:
            self.line("ok", test, f" ({time.monotonic() - self.began:.1f} s)")

    def addError(self, test, err):
        super().addError(test, err)
        self.diagnose(test, err)
        if isinstance(test, unittest.TestCase):
            self.bad.add(test)
        else:
            self.line("not ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.diagnose(test, err)
        self.bad.add(test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.stream.write(f"# {subtest.id()} {subtest._subDescription()}\n")
            self.diagnose(test, err)
            self.bad.add(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line("ok", test, f" # SKIP {reason}")


def flatten(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from flatten(entry)
        else:
            yield entry


def chooser(arguments):
    """From the arguments: does a test belong to this run?"""
    if arguments[:1] != ["--group"]:
        return lambda name: not arguments or any(part in name for part in arguments)
    group = arguments[1]
    if group == "rest":
        named = tuple(part for parts in GROUPS.values() for part in parts)
        return lambda name: not name.startswith(named)
    return lambda name: name.startswith(tuple(GROUPS[group]))


def main():
    wanted = chooser(sys.argv[1:])
    reason = harness.skip_reason()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    # A loader each: one remembers where it began.
    tests = [test for place in PLACES for test in flatten(unittest.TestLoader().discover(place)) if wanted(test.id())]
    result = Tap(sys.stdout)
    try:
        unittest.TestSuite(tests).run(result)
    finally:
        harness.close_world()
    print(f"1..{result.number}")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
