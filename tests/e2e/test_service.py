# SPDX-License-Identifier: MIT
"""The service: history across its restarts, ten sessions killed at random, what an operator does wrong."""

import json
import os
import random
import signal
import subprocess
import time
import unittest

import harness
from harness import EB, Try, allow


class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config()

    def serve(self):
        process = subprocess.Popen([EB, "--config", self.world.config, "serve"], env=self.world.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        up = harness.wait_until(lambda: process.poll() is not None or self.world.run("status").returncode == 0)
        self.assertTrue(up and process.poll() is None, process.stdout.read() if process.poll() is not None else "no answer")
        return process

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0, process.stdout.read())

    def test_history_across_a_restart_of_the_service(self):
        for agent in ("opencode", "claude-agent-acp"):
            with self.subTest(agent=agent):
                process = self.serve()
                first = Try(self.world, "@mock say the word is heliotrope", "--service", "--agent", agent, "--project",
                            f"restart-{agent}", answer=allow).wait()
                self.assertEqual(first.code, 0, first.describe())
                session = next(e["session"] for e in first.events if e["event"] == "ready")
                self.stop(process)
                self.assertTrue(harness.wait_until(lambda: not self.world.instances()), self.world.instances())
                process = self.serve()
                listed = json.loads(self.world.run("--json", "sessions", "list").stdout)["sessions"]
                self.assertIn(session, [row["id"] for row in listed])
                seen = len(self.world.model.requests())
                second = Try(self.world, "@mock say again", "--service", "--session", session, answer=allow).wait()
                self.assertEqual(second.code, 0, second.describe())
                said = [text for row in self.world.model.requests()[seen:] for text in row.get("users", [])]
                self.assertTrue(any("heliotrope" in text for text in said), said)
                self.assertEqual(self.world.run("sessions", "stop", session).returncode, 0)
                self.stop(process)
                self.assertTrue(harness.wait_until(lambda: not self.world.instances()))

    def test_two_services_on_one_state_directory(self):
        process = self.serve()
        second = self.world.run("serve", timeout=60)
        self.assertEqual(second.returncode, 4, second.stderr)
        self.assertIn(str(process.pid), second.stderr)
        self.stop(process)

    def test_service_killed_leaves_what_the_next_one_sweeps(self):
        process = self.serve()

        def kill_service(run, event):  # in its turn: what was not given to an agent yet, the next service would give it
            if event["event"] == "tool":
                process.kill()

        run = Try(self.world, "@mock shell sleep 60", "--service", "--agent", "claude-agent-acp", "--project", "killed",
                  answer=allow, before_event=kill_service).wait()
        process.wait(20)
        self.assertNotEqual(run.code, 0)
        process = self.serve()
        self.assertTrue(harness.wait_until(lambda: not self.world.instances(), 60), self.world.instances())
        self.assertEqual(self.world.brokers(), [])
        self.stop(process)

    def test_daemon_stopped_in_the_middle_of_a_turn(self):
        killed = {}

        def kill_daemon(run, event):
            if event["event"] == "tool" and not killed:
                killed["pid"] = self.world.incusd_pid()
                os.kill(killed["pid"], signal.SIGKILL)

        run = Try(self.world, "@mock shell sleep 30", "--agent", "claude-agent-acp", "--project", "daemon", answer=allow,
                  before_event=kill_daemon).wait()
        self.assertTrue(killed)
        self.assertEqual(run.code, 1, run.describe())
        self.assertTrue(run.stderr.strip(), run.describe())
        self.world.setup()
        self.assertEqual(Try(self.world, "@mock say sweep", "--agent", "claude-agent-acp", "--project", "daemon2").wait().code, 0)
        self.assertTrue(harness.wait_until(lambda: not self.world.instances(), 60), self.world.instances())

    def test_ten_at_once_killed_at_random(self):
        mounts = harness.mounts_below(self.world.dir)
        seed = random.randrange(1 << 30)
        harness.log(f"seed {seed}")
        chance = random.Random(seed)
        runs = [Try(self.world, "@mock shell sleep 3", "--agent", "claude-agent-acp", "--project", f"ten-{n}", answer=allow)
                for n in range(10)]
        pending = list(runs)
        while pending:
            time.sleep(chance.uniform(0.2, 2.5))
            run = pending.pop(chance.randrange(len(pending)))
            if run.process.poll() is None:
                run.process.kill()
        for run in runs:
            run.process.wait()
        # The next run finds what the dead ones left and takes it away before it starts its own.
        after = Try(self.world, "@mock say clean", "--agent", "claude-agent-acp", "--project", "ten-after").wait()
        self.assertEqual(after.code, 0, after.describe())
        self.assertTrue(harness.wait_until(lambda: not self.world.instances(), 60),
                        f"{self.world.instances()}\n{after.describe()}")
        self.assertEqual(self.world.brokers(), [])
        self.assertEqual(harness.mounts_below(self.world.dir), mounts)
        self.assertEqual(self.world.sockets(), [])
        self.assertEqual(self.world.live_rows(), [])

