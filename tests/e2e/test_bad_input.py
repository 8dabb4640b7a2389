# SPDX-License-Identifier: MIT
"""What people get wrong: one clear line, the right exit code, nothing left behind."""

import os
import unittest

import harness
from harness import Try


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config()

    def setUp(self):
        self.world.write_config()

    def refused(self, code, *needles, args=(), prompt="hello"):
        run = Try(self.world, prompt, *args).wait()
        self.assertEqual(run.code, code, run.describe())
        lines = [line for line in run.stderr.splitlines() if line.startswith("errand-box: ")]
        self.assertTrue(lines, run.describe())
        for needle in needles:
            self.assertIn(needle, run.stderr, run.describe())
        self.assertNotIn(self.world.model.key, run.stderr)
        self.assertTrue(harness.wait_until(lambda: not self.world.instances()), self.world.instances())
        self.assertEqual(self.world.brokers(), [])
        return run

    def test_unknown_agent_names_the_nearest(self):
        self.refused(2, "opencod", "opencode", args=("--agent", "opencod"))

    def test_project_names(self):
        for name in ("..", "../up", "a/b", "/abs", "x" * 300, "projekt-\u00e4", ".hidden", "a\nb", ""):
            with self.subTest(name=name):
                self.refused(2, "project", args=("--project", name))

    def test_guest_too_small_names_the_floor(self):
        self.world.write_config(memory="512MiB")
        self.refused(2, "GiB", "opencode", args=("--agent", "opencode"))

    def test_agent_not_in_the_image(self):
        self.refused(2, "kage", "image", args=("--agent", "kage"))

    def test_image_missing(self):
        self.world.write_config(extra='[plugin.incus]\nimage = "no-such-image"\n')
        self.refused(2, "no-such-image")

    def test_key_missing_names_credential_and_places(self):
        self.world.write_config(providers=(), extra='[provider.openai]\nkind = "openai"\n'
                                f'base_url = "{self.world.model.url}/v1"\nkey = "cred:other-key"\n')
        self.refused(2, "other-key", "creds.env")

    def test_no_daemon(self):
        self.world.write_config(extra='[plugin.incus]\nsocket = "/nonexistent/unix.socket"\n')
        self.refused(2, "/nonexistent/unix.socket")

    def test_projects_directory_missing_or_full(self):
        self.world.write_config()
        root = self.world.projects
        os.rename(root, root + ".away")
        try:
            self.refused(2, root, "setup", args=("--agent", "claude-agent-acp", "--project", "p"))
            self.assertFalse(os.path.exists(root))
        finally:
            os.rename(root + ".away", root)
        harness.mount_tmpfs(root, "1m")
        try:
            harness.fill(root)
            self.refused(1, "space", args=("--project", "full", "--agent", "claude-agent-acp"))
        finally:
            harness.unmount(root)

    def test_configuration_problems_are_reported_together(self):
        with open(self.world.config, "a", encoding="utf-8") as file:
            file.write('[session.more]\nx = 1\n[limits]\nmax_live_sesions = 3\nmax_concurrent_turns = "two"\n')
        run = self.refused(2, "max_live_sesions", "max_live_sessions", "max_concurrent_turns")
        self.assertRegex(run.stderr, r"errand-box\.toml:\d+")

    def test_another_account_is_told_so_in_one_line(self):
        for args in (("creds", "list"), ("try", "hi"), ("serve",), ("setup",), ("sessions", "list"), ("sessions", "prune"),
                     ("image", "list"), ("image", "verify"), ("status",)):
            with self.subTest(args=args):
                result = self.world.run(*args, timeout=60, user=65534, group=65534, extra_groups=[])
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertTrue(result.stderr.startswith("errand-box: "), result.stderr)
                self.assertNotIn(self.world.model.key, result.stderr)

    def test_damaged_database_is_refused_and_left_alone(self):
        path = os.path.join(self.world.state, "state.db")
        kept = os.path.exists(path)
        if kept:
            os.rename(path, path + ".kept")
        damaged = b"no database at all\n" * 1000
        with open(path, "wb") as file:
            file.write(damaged)
        state = os.stat(self.world.state)
        os.chown(path, state.st_uid, state.st_gid)
        try:
            result = self.world.run("serve", timeout=60)
            # Not 1: a supervisor starts that again, for ever.
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(path, result.stderr)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), damaged)
        finally:
            os.unlink(path)
            if kept:
                os.rename(path + ".kept", path)

    def test_degraded_not_accepted_refuses_the_service(self):
        if not os.path.exists("/sys/module/apparmor/parameters/enabled"):
            self.world.write_config(accept=())
            result = self.world.run("serve", timeout=60)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("E-17", result.stderr)

