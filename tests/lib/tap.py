# SPDX-License-Identifier: MIT
"""TAP from unittest, for the test programs that are written in Python."""

import sys
import unittest


class Tap(unittest.TextTestResult):
    """One line a test as soon as it is over; a test with failing sub-tests fails once."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.number, self.bad = 0, set()

    def line(self, verdict, test, note=""):
        self.number += 1
        print(f"{verdict} {self.number} - {test.id().split('.', 1)[-1]}{note}", flush=True)

    def addSuccess(self, test):
        if test not in self.bad:
            self.line("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line("not ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.line("not ok", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None and test not in self.bad:
            self.bad.add(test)
            self.line("not ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line("ok", test, f" # SKIP {reason}")


def main(module):
    """Runs the tests of a module (its __name__) and ends the program."""
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module])
    outcome = unittest.TextTestRunner(sys.stderr, resultclass=Tap).run(tests)
    print(f"1..{outcome.number}")
    sys.exit(0 if outcome.wasSuccessful() else 1)
