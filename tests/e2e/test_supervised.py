# SPDX-License-Identifier: MIT
"""The service under a real s6: set up, killed, refused, stopped, started, and beside one in the foreground."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import unittest

import harness
from harness import EB


class Supervised(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config()
        if shutil.which("s6-svscan") is None:
            raise unittest.SkipTest("s6 is not installed")
        cls.scan = os.path.join(cls.world.dir, "scan")
        os.mkdir(cls.scan, 0o755)
        cls.svscan = subprocess.Popen(["s6-svscan", cls.scan], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        assert harness.wait_until(lambda: os.path.exists(cls.scan + "/.s6-svscan/control"))
        cls.world.env["ERRAND_BOX_S6_SCANDIR"] = cls.scan

    @classmethod
    def tearDownClass(cls):
        del cls.world.env["ERRAND_BOX_S6_SCANDIR"]
        # Ends what it supervises, then itself.
        cls.svscan.terminate()
        cls.svscan.wait(60)
        cls.world.write_config()

    def status(self):
        result = self.world.run("--json", "status")
        document = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0 if document["running"] else 1, result.stderr)
        return document

    def ok(self, *args):
        result = self.world.run(*args)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result

    def test_1_setup_gives_it_to_s6(self):
        rows = {row["id"]: row for row in json.loads(self.ok("--json", "setup", "--creds", self.world.creds).stdout)["steps"]}
        self.assertEqual(rows["units"]["result"], "changed", rows)
        self.assertEqual(rows["start"]["result"], "changed", rows)
        again = {row["id"]: row for row in json.loads(self.ok("--json", "setup", "--creds", self.world.creds).stdout)["steps"]}
        self.assertEqual([row for row in again.values() if row["result"] == "changed"], [])
        document = self.status()
        self.assertTrue(document["running"])
        self.assertEqual((document["supervisor"]["kind"], document["supervisor"]["state"]), ("s6", "ready"))
        self.assertEqual(document["pid"], document["supervisor"]["pid"])
        self.assertTrue(document["backend"]["answers"] and document["pools"], document)
        self.assertTrue(harness.wait_until(lambda: self.status()["watchdog"]["running"]))

    def test_2_one_screen(self):
        text = self.ok("status").stdout
        self.assertLessEqual(len(text.splitlines()), 24, text)
        self.assertLessEqual(max(len(line) for line in text.splitlines()), 80, text)
        for word in ("running for", "s6", "sessions", "queue", "incus", "pool", "watchdog", "degraded", "E-"):
            self.assertIn(word, text)

    def test_2_the_account_may_look(self):
        account = pwd.getpwnam("errand")
        result = self.world.run("status", user=account.pw_uid, group=account.pw_gid, extra_groups=[])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("only root can ask s6", " ".join(result.stdout.split()))  # wherever the line breaks

    def test_3_up_on_a_running_one(self):
        pid = self.status()["pid"]
        self.assertIn(f"pid {pid}", self.ok("up").stdout)
        for args in (("serve",), ("up", "--foreground")):
            second = self.world.run(*args)
            self.assertEqual(second.returncode, 4, second.stderr)
            self.assertIn(str(pid), second.stderr)
        self.assertIn(self.status()["instance"], second.stderr)

    def test_4_killed_and_back(self):
        pid = self.status()["pid"]
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(harness.wait_until(lambda: self.status().get("pid", pid) != pid, 60))
        self.assertEqual(self.ok("up").returncode, 0)

    def test_5_down_and_up(self):
        pid = self.status()["pid"]
        self.assertIn(f"pid {pid}", self.ok("down").stdout)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))
        document = self.status()
        self.assertEqual((document["running"], document["supervisor"]["state"]), (False, "down"), document)
        self.assertFalse(document["watchdog"]["running"])
        self.assertTrue([check["id"] for check in document["health"]["checks"]])
        self.assertIn("does not run", self.ok("down").stdout)
        self.assertIn("is ready", self.ok("up").stdout)

    def test_6_refused_and_left_so(self):
        self.ok("down")
        self.world.write_config(backend="nowhere")
        refused = self.world.run("up")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("nowhere", refused.stderr)
        document = self.status()
        self.assertEqual((document["supervisor"]["state"], document["supervisor"]["exit_code"]), ("failed", 2), document)
        self.assertIn("nowhere", document["last_error"])
        self.assertIn("nowhere", self.world.run("status").stdout)
        # s6 itself does not want it up any more.
        line = subprocess.run(["s6-svstat", "-o", "up,wantedup", self.scan + "/errand-boxd"], text=True,
                              capture_output=True, check=True).stdout
        self.assertEqual(line.split(), ["false", "false"])
        self.assertTrue(os.path.isfile(document["log"]), document)
        self.assertIn("does not run", self.ok("down").stdout)
        self.assertFalse(self.status()["watchdog"]["running"])
        self.world.write_config(accept=())
        degraded = self.world.run("up")
        self.assertEqual(degraded.returncode, 3, degraded.stderr)
        self.assertIn("E-", degraded.stderr)
        self.world.write_config()
        self.ok("up")
        # What went wrong before is over when the last run ended as it was told to.
        self.ok("down")
        self.assertIsNone(self.status()["last_error"])
        self.ok("up")

    def test_7_beside_one_in_the_foreground(self):
        self.ok("down")
        process = subprocess.Popen([EB, "--config", self.world.config, "up", "--foreground"], env=self.world.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.assertTrue(harness.wait_until(lambda: process.poll() is not None or self.status()["running"], 60))
        other = self.world.run("up")
        self.assertEqual(other.returncode, 4, other.stderr)
        self.assertIn(str(process.pid), other.stderr)
        self.assertIn(f"pid {process.pid}", self.ok("down").stdout)
        self.assertEqual(process.wait(60), 0, process.stdout.read())
