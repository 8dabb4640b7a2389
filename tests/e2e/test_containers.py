# SPDX-License-Identifier: MIT
"""Rootless podman in a guest: an image made on the spot from a local tar, run without a network."""

import os
import shutil
import unittest

import harness
from harness import Try, allow

SCRIPT = """exec >/workspace/out.txt 2>&1
mkdir -p /tmp/root/bin && cp /workspace/busybox /tmp/root/bin/ && tar -C /tmp/root -cf /tmp/image.tar . || exit
podman import -q /tmp/image.tar localhost/tiny >/dev/null && echo imported
podman run --rm --network none localhost/tiny /bin/busybox sh -c 'busybox echo uid $(busybox id -u)
  busybox ls /sys/class/net | busybox xargs busybox echo devices; busybox echo from the container'
echo code $?
podman ps -a -q | wc -l
"""


@unittest.skipUnless(shutil.which("busybox"), "busybox-static is not installed")
class Containers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()

    def tearDown(self):
        self.world.write_config()

    def attempt(self, project, **session):
        self.world.write_config(**session)
        directory = self.world.project(project)
        os.makedirs(directory)
        shutil.copy(shutil.which("busybox"), directory / "busybox")
        (directory / "go.sh").write_text(SCRIPT)
        for path in (directory, directory / "busybox", directory / "go.sh"):
            shutil.chown(path, "errand", "errand")
        run = Try(self.world, "@mock shell sh /workspace/go.sh\n@mock say done", "--agent", "claude-agent-acp", "--project",
                  project, answer=allow).wait()
        self.assertEqual(run.code, 0, run.describe())
        self.assertTrue(harness.wait_until(lambda: not self.world.instances()), self.world.instances())
        return (directory / "out.txt").read_text()

    def test_run_without_network(self):
        out = self.attempt("containers", containers=True, pids=1024)
        for line in ("imported", "uid 0", "devices lo", "from the container", "code 0"):
            self.assertIn(line, out.splitlines(), out)
        self.assertEqual(out.splitlines()[-1], "0", out)

    def test_not_unless_asked_for(self):
        out = self.attempt("no-containers")
        self.assertNotIn("from the container", out)
