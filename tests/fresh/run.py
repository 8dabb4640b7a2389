#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From a machine with nothing on it to a session that works, and back: the packages are installed into a clean Debian
root, setup prepares it, the service runs a session, all is taken back and compared with what was there before."""

import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

BUILD = pathlib.Path(os.environ["EB_TEST_BUILD_ROOT"])
SOURCE = pathlib.Path(os.environ["EB_TEST_SOURCE_ROOT"])
sys.path[:0] = [str(SOURCE / "tests" / "lib"), str(SOURCE / "tests" / "fresh")]
import root as machine  # noqa: E402
import tap  # noqa: E402

# What an operator writes besides: gaps of this host that he has read about and accepts.
CONFIG = """\
[service]
accept_degraded = {accepted}
[plugins]
enabled = ["incus", "credentials", "doctor-checks", "chat-console"]
[session]
memory = "1GiB"
"""
ENV = """\
# handed to setup
ERRAND_PROVIDER=openai
ERRAND_PROVIDER_BASE_URL="http://127.0.0.1:{port}/v1"
ERRAND_MODEL=mock-model
ERRAND_AGENT=opencode
"""
KEY = "sk-fresh-0123456789abcdef"


def packages():
    """The .deb files of this commit."""
    out = BUILD / "deb"
    subprocess.run([str(SOURCE / "tools/build-deb"), str(out)], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return [path for path in glob.glob(str(out / "*.deb")) if "-dev_" not in path and "dbgsym" not in path]


class Fresh(unittest.TestCase):
    """The tests go on from each other, in the order of their names."""

    @classmethod
    def setUpClass(cls):
        reason = machine.skip_reason()
        if reason:
            raise unittest.SkipTest(reason)
        cls.files = packages()
        read, write = os.pipe()
        os.write(write, KEY.encode())
        os.close(write)
        cls.model = subprocess.Popen([str(BUILD / "tests/standins/model/eb-model-standin"), "--key-fd", str(read)],
                                     stdout=subprocess.PIPE, pass_fds=[read], text=True)
        os.close(read)
        cls.port = json.loads(cls.model.stdout.readline())["port"]
        try:
            cls.root = machine.Root(BUILD / "fresh")
            cls.prepare()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        if hasattr(cls, "scan"):
            cls.scan.kill()
            cls.scan.wait()
        if hasattr(cls, "root"):
            cls.root.close()
        cls.model.terminate()
        cls.model.wait(10)

    @classmethod
    def prepare(cls):
        cls.root.must("apt-get", "-q", "update")
        # A machine has something that supervises its services.
        cls.root.must("apt-get", "-q", "-y", "--no-install-recommends", "install", "s6")
        cls.bare = cls.root.listing()
        for path in cls.files:
            shutil.copy(path, cls.root.view / "tmp")
        names = ["/tmp/" + os.path.basename(path) for path in cls.files]
        cls.root.must("apt-get", "-q", "-y", "--no-install-recommends", "install", *names)
        cls.root.must("mkdir", "/run/service")
        cls.scan = subprocess.Popen(cls.root.command("s6-svscan", "/run/service"), stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.take_built_image()
        cls.write_config([])
        cls.root.write("/srv/handed/errand-box.env", ENV.format(port=cls.port))
        cls.root.write("/srv/handed/creds.env", f"ERRAND_PROVIDER_CREDENTIAL={KEY}\n", 0o600)
        cls.before = cls.root.listing()

    @classmethod
    def write_config(cls, accepted):
        cls.root.write("/etc/errand-box/errand-box.toml", CONFIG.format(accepted=json.dumps(accepted)))

    @classmethod
    def take_built_image(cls):
        """An image takes minutes to build, and is made from the init of the build: with this build's, one that another
        test made is as good. Without one setup builds it."""
        built = pathlib.Path("/var/cache/errand-box/images")
        shutil.copy(BUILD / "guest/init", cls.root.view / "usr/libexec/errand-box/guest/init")
        if built.is_dir():
            shutil.copytree(built, cls.root.view / "var/cache/errand-box/images")

    def eb(self, *args, **kwargs):
        return self.root.run("errand-box", *args, **kwargs)

    def check(self, *args, code=0):
        result = self.eb(*args)
        self.assertEqual(result.returncode, code, f"{args}\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}")
        self.assertNotIn(KEY, result.stdout + result.stderr)
        return result

    def rows(self, *args):
        answer = json.loads(self.check("--json", "setup", *args).stdout)
        return {row["id"]: row for row in answer["steps"]}

    def setup_rows(self, *args):
        return self.rows("--creds", "/srv/handed/creds.env", "--env", "/srv/handed/errand-box.env", *args)

    def assert_same(self, before, after, passed=()):
        lines = [line for line in machine.difference(before, after) if not line.startswith(tuple(passed))]
        self.assertEqual(lines, [], "\n".join(lines))

    def test_1_doctor_runs_before_setup(self):
        result = self.eb("--json", "doctor")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        self.assertGreater(len(json.loads(result.stdout)["checks"]), 10)

    def test_2_plan_changes_nothing(self):
        rows = self.setup_rows("--plan")
        self.assertEqual(rows["packages"]["result"], "planned")
        self.assertIn("incus-base", rows["packages"]["detail"])
        self.assertEqual(rows["account"]["result"], "planned")
        for row in rows.values():
            self.assertTrue(row["undo"] or row["result"] != "planned", row)
        self.assert_same(self.before, self.root.listing())

    def test_2_without_apt(self):
        """What is missing is named, for whoever installs it by other means."""
        place = self.root.view / "usr/bin/apt-get"
        place.rename(place.with_suffix(".away"))
        try:
            refused = self.check("setup", code=2)
        finally:
            place.with_suffix(".away").rename(place)
        self.assertIn("no apt", refused.stderr)
        self.assertIn("incus-base", refused.stderr)
        self.assert_same(self.before, self.root.listing())

    def test_2_without_network(self):
        """Said as such, and the next run goes on."""
        self.root.write("/etc/apt/apt.conf.d/99away", 'Acquire::http::Proxy "http://127.0.0.1:9";\n'
                                                      'Acquire::https::Proxy "http://127.0.0.1:9";\n')
        refused = self.eb("setup")
        (self.root.view / "etc/apt/apt.conf.d/99away").unlink()
        self.assertIn(refused.returncode, (1, 2))
        self.assertIn("when the network is back, run setup again", refused.stderr)
        self.assertFalse((self.root.view / "usr/libexec/incus/incusd").exists())

    def test_2_without_yes_for_the_kernel(self):
        """An apt that would bring a kernel module along is not let."""
        self.root.must("apt-get", "-q", "update")
        wrapper = "/usr/local/sbin/apt-get"
        self.root.write(wrapper, '#!/bin/sh\n/usr/bin/apt-get "$@" || exit\n'
                                 'case "$*" in -s*" install "*) echo "Inst zfs-dkms (2.1.11 Debian [all])" ;; esac\n', 0o755)
        refused = self.eb("setup")
        plan = self.check("setup", "--plan")  # the lists are there by now
        (self.root.view / wrapper.lstrip("/")).unlink()
        self.assertIn("which setup asks about first: zfs-dkms", plan.stdout)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("zfs-dkms; nothing was installed", refused.stderr)
        self.assertFalse((self.root.view / "usr/libexec/incus/incusd").exists())

    def test_2_without_descriptors(self):
        """Nothing that is opened later is taken for standard output."""
        before = self.root.listing()
        result = self.root.run("sh", "-c", "exec errand-box setup --plan <&- >&- 2>&-")
        self.assertEqual(result.returncode, 0)
        self.assert_same(before, self.root.listing())

    def test_3_setup_from_a_pipe(self):
        """No terminal, a script on standard input, from a directory that is gone."""
        script = ("mkdir /srv/gone && cd /srv/gone && rmdir /srv/gone && "
                  "errand-box setup --creds /srv/handed/creds.env --env /srv/handed/errand-box.env\n")
        result = subprocess.run(self.root.command("sh"), input=script, capture_output=True, text=True, timeout=900,
                                check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertNotIn(KEY, result.stdout + result.stderr)
        print("# " + result.stdout.replace("\n", "\n# "))

    def test_4_again_changes_nothing(self):
        during = self.root.listing()
        rows = self.setup_rows()
        self.assertEqual({row["result"] for row in rows.values()} - {"ok", "degraded"}, set(), rows)
        self.assert_same(during, self.root.listing())

    def test_5_a_session_works(self):
        result = self.check("try", "--permissions", "allow", "@mock say hello from a try")
        self.assertIn("hello from a try", result.stdout)

    def test_6_the_service_serves(self):
        """up refuses until the operator has accepted what this host lacks, and then a session works through it."""
        checks = json.loads(self.eb("--json", "doctor").stdout)["checks"]
        degraded = [check["id"] for check in checks if check["status"] == "degraded"]
        self.assertEqual([check for check in checks if check["status"] == "fail"], [])
        if degraded:
            refused = self.check("up", code=3)
            self.assertIn(degraded[0], refused.stderr)
        self.write_config(degraded)
        self.check("up")
        self.check("status")
        result = self.check("try", "--service", "--permissions", "allow", "@mock say hello from the service")
        self.assertIn("hello from the service", result.stdout)
        self.check("down")

    def test_7_undo_keeps_what_people_made(self):
        rows = self.rows("--undo")
        self.assertIn("in it", rows["directories"]["detail"])
        self.assertTrue((self.root.view / "var/lib/errand-box").is_dir())

    def test_8_undo_leaves_nothing(self):
        self.rows("--undo", "--yes-data")
        self.assert_same(self.before, self.root.listing(), ("/var/cache/errand-box",))
        self.assertEqual(self.rows("--undo"), {})

    def test_9_packages_go(self):
        names = [os.path.basename(path).split("_")[0] for path in self.files]
        (self.root.view / "etc/errand-box/errand-box.toml").unlink()
        self.root.must("apt-get", "-q", "-y", "purge", "--auto-remove", *names)
        self.assert_same(self.bare, self.root.listing(), (
            "/var/cache/errand-box", "/etc/errand-box",  # what this test put there itself
            # What Debian's own dbus and systemd, which glib-networking brings along, leave when they are purged.
            "/etc/machine-id", "/etc/mtab", "/var/cache/private", "/var/lib/private",
            "lines of /etc/group: new messagebus:", "lines of /etc/group: new systemd-",
            "lines of /etc/passwd: new messagebus:", "lines of /etc/passwd: new systemd-"))


if __name__ == "__main__":
    tap.main(__name__)
