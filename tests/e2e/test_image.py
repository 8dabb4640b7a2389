# SPDX-License-Identifier: MIT
"""The image commands against the image that sessions start from."""

import json
import os
import signal
import subprocess
import unittest

import harness


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config()

    def assert_clean(self):
        self.assertTrue(harness.wait_until(lambda: not self.world.instances()), self.world.instances())
        sessions = os.path.join(self.world.state, "sessions")
        self.assertFalse([name for name in os.listdir(sessions) if name.startswith("verify-")])

    def test_verify_in_a_guest(self):
        done = self.world.run("image", "verify")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("git", "rg", "python3", "node", "podman", "opencode", "claude-agent-acp"):
            self.assertRegex(done.stdout, f"(?m)^{word} .+$", done.stdout)
        self.assert_clean()

    def test_list_says_current_or_stale(self):
        done = self.world.run("--json", "image", "list")
        images = json.loads(done.stdout)["images"]
        mine = [image for image in images if image["alias"] == "errand-box/guest"]
        self.assertEqual([image["state"] for image in mine], ["current"], done.stdout)
        self.assertGreater(mine[0]["created"], 0)
        done = self.world.run("image", "list")
        self.assertRegex(done.stdout, "errand-box/guest +[0-9a-f]{12} .*iB +20.*current .*claude-agent-acp=")

    def test_verify_interrupted(self):
        process = subprocess.Popen([harness.EB, "--config", self.world.config, "image", "verify"], env=self.world.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(harness.wait_until(self.world.instances), "no guest was started")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0, errors)
        self.assert_clean()
