# SPDX-License-Identifier: MIT
"""`maint selftest` on the prepared world: more than two hundred kills at every step, and nothing left behind."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import harness
from harness import EB

KILLS = int(os.environ.get("EB_SELFTEST_KILLS", "210"))  # CI: every step more than twice
JOBS = 3
GROUPS = {"start", "launch", "turn", "stop", "delete", "close"}


class Selftest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config()

    def assert_nothing_left(self):
        self.assertEqual(self.world.instances(), [])
        self.assertEqual(list(pathlib.Path(self.world.state, "try").glob("selftest-*")), [])
        self.assertEqual(self.world.brokers(), [])
        self.assertEqual([mount for mount in harness.mounts_below(self.world.dir) if "selftest-" in mount], [])

    def test_killed_at_every_step(self):
        command = [EB, "--config", self.world.config, "--json", "maint", "selftest", "--kills", str(KILLS), "--jobs", str(JOBS)]
        result = subprocess.run(command, env=self.world.env, text=True, stdin=subprocess.DEVNULL, capture_output=True,
                                timeout=2400, check=False)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        report = json.loads(result.stdout)
        harness.log(f"{report['kills']} kills {report['groups']} in {report['ms'] / 1000:.0f} s, seed {report['seed']}; "
                    f"{report['starts']} starts, median {report['start_median_ms']} ms, slowest {report['start_slowest_ms']} ms "
                    f"({report.get('slowest')}); {report['sessions']} sessions, {report['prompts']} prompts, "
                    f"{report['late_guests']} late guests, {report['missed']} kills tried again")
        for path in sorted(pathlib.Path(report["reports"]).glob("*.log"))[:3] if report["violations"] else ():
            harness.log(path.read_text(encoding="utf-8")[-4000:])
        self.assertEqual(report["violations"], [], result.stderr)
        self.assertEqual(report["kills"], KILLS)
        self.assertEqual(set(report["groups"]), GROUPS)
        self.assertGreaterEqual(min(report["steps"].values()), KILLS // len(report["steps"]))
        self.assert_nothing_left()

    def test_interrupted_it_takes_back_what_it_made(self):
        process = subprocess.Popen([EB, "--config", self.world.config, "maint", "selftest", "--kills", "50", "--jobs", "2"],
                                   env=self.world.env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.assertTrue(harness.wait_until(self.world.instances, 60))
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("is taken back", errors)
        self.assertTrue(harness.wait_until(lambda: not self.world.instances()), self.world.instances())
        self.assert_nothing_left()

    def test_killed_itself_the_next_one_clears_away(self):
        process = subprocess.Popen([EB, "--config", self.world.config, "maint", "selftest", "--kills", "50", "--jobs", "2"],
                                   env=self.world.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.assertTrue(harness.wait_until(self.world.instances, 60))
        process.kill()
        process.wait()
        result = self.world.run("maint", "selftest", "--kills", "1", "--jobs", "1", "--seed", "1")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assert_nothing_left()

    def test_options_out_of_range(self):
        for option, value in (("--kills", "0"), ("--kills", "many"), ("--jobs", "1000"), ("--seed", "-1")):
            result = self.world.run("maint", "selftest", option, value)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(option, result.stderr)
