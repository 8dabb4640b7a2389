# SPDX-License-Identifier: MIT
"""Where the operator's secrets are while a real agent works for people in a chat, and where they are not: everything that
a session touches is searched for them, in every encoding."""

import os
import pathlib
import re
import secrets
import subprocess
import sys
import time
import unittest

import harness
from discord_world import BOB, CHECK, Chat
from secret_search import Search, shapes

# Keeps what it reads on a page that images leave out, or on one of the heap.
KEEPER = """
import mmap, os, sys
page = mmap.mmap(-1, 65536, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
if sys.argv[1] == "hidden":
    page.madvise(mmap.MADV_DONTDUMP)
os.readv(0, [page])
print("kept", flush=True)
os.read(0, 1)
"""


class Searching(unittest.TestCase):
    """The search finds what is there, in every shape: what it does not find is not there."""

    def setUp(self):
        self.secret = "marker-" + secrets.token_urlsafe(24)
        self.search = Search({"planted": self.secret})

    def image_of(self, place, text):
        process = subprocess.Popen([sys.executable, "-c", KEEPER, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            process.stdin.write(text)
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"kept\n")
            return self.search.core(process.pid, "/tmp")[0]
        finally:
            process.communicate(b"x", timeout=30)

    def test_shapes(self):
        for name, value in shapes(self.secret).items():
            with self.subTest(shape=name):
                self.assertTrue(any(f"({name})" in line for line in self.search.bytes("here", b"before" + value + b"behind")))
        self.assertEqual(self.search.bytes("here", self.secret[:-1].encode()), [])

    @unittest.skipIf(os.geteuid() != 0, "images of other processes need root")
    def test_image_of_a_process(self):
        text = b"\n".join(shapes(self.secret).values())
        found = self.image_of("plain", text)
        self.assertEqual(len(found), len(self.search.forms), found)
        self.assertEqual(self.image_of("hidden", text), [])


class Secrets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.tag = secrets.token_hex(2)
        cls.key = os.path.join(cls.world.dir, "seal.key")
        cls.sealing = f'[plugin.credentials]\nsealed_key_file = "{cls.key}"\n'
        cls.world.write_config(extra=cls.sealing)
        sealed = cls.world.run("creds", "seal")
        assert sealed.returncode == 0, sealed.stderr
        cls.addClassCleanup(cls.unseal)
        cls.search = Search({"model key": cls.world.model.key, "chat token": cls.world.chat_token})

    @classmethod
    def unseal(cls):
        os.unlink(os.path.join(cls.world.state, "creds.sealed"))
        cls.world.write_config()
        cls.world.run("creds", "import", cls.world.creds)

    def guest_roots(self):
        """Top folders of the live guests' file systems, as the guests have them mounted."""
        for entry in self.world.incus("GET", "/1.0/instances?all-projects=true&recursion=1")["metadata"]:
            state = self.world.incus("GET", f"/1.0/instances/{entry['name']}/state?project={entry['project']}")["metadata"]
            for name in os.listdir(f"/proc/{state['pid']}/root"):
                if name not in ("proc", "sys", "dev"):
                    yield f"/proc/{state['pid']}/root/{name}"

    def watch(self):
        """The watchdog beside the service, as in production."""
        log = open(os.path.join(self.world.dir, "secrets-watchdog.log"), "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([str(harness.BUILD / "errand-box-watchdog"), "-v", "--config", self.world.config],
                                   env=self.world.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait, 30)
        self.addCleanup(process.terminate)
        return process

    def own_programs(self):
        """Every process of ours in this world: the service, its brokers, the watchdog, children of the doctor."""
        ours = [pid for pid, _ in harness.command_lines() if harness.executable(pid).startswith(f"{harness.BUILD}/errand-box")]
        lines = dict(harness.command_lines())
        return {pid: os.path.basename(harness.executable(pid)) for pid in ours
                if self.world.dir in lines.get(pid, "") + lines.get(harness.parent(pid), "")}

    def look_at_memory(self):
        """An image of each holds no secret; the pages that are for them are there, and left out."""
        images, kept = {}, {}
        for pid, name in self.own_programs().items():
            if not os.path.exists(f"/proc/{pid}"):
                continue  # a child of the doctor that was done
            kept.setdefault(name, []).extend(self.search.hidden(pid))
            found, size = self.search.core(pid, self.world.dir)
            self.assertEqual(found, [], f"{name} has secrets outside the pages that are for them")
            self.assertGreater(size, 100000, name)
            images.setdefault(name, []).append(size)
        harness.log(f"images searched: {images}")
        self.assertEqual(set(images), {"errand-box", "errand-box-broker", "errand-box-watchdog"})
        # Where they are meant to be, they are found; the chat's token is no business of a broker's.
        self.assertTrue(any("chat token (raw)" in line for line in kept["errand-box"]), kept)
        self.assertTrue(any("model key (raw)" in line for line in kept["errand-box-broker"]), kept)
        self.assertFalse(any("chat token" in line for line in kept["errand-box-broker"]), kept)
        self.assertEqual(kept["errand-box-watchdog"], [])

    def look_at_everything(self, began):
        """While the turn waits for an answer: everything is alive."""
        found, seen = self.search.processes()
        self.assertEqual(found, [])
        self.assertGreater(seen, 10)
        self.look_at_memory()
        found, count = self.search.files(*self.guest_roots(), newer=began)
        self.assertEqual(found, [])
        self.assertGreater(count, 0)

    def test_a_whole_session(self):
        began = time.time() - 1
        chat = Chat(self.world, operators=[BOB], more=self.sealing, verbose="-vvv")
        self.addCleanup(chat.close)
        chat.start()
        self.watch()
        name = f"secrets-{self.tag}"
        script = "{ env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; } > /workspace/seen.txt 2>/dev/null; echo looked"
        thread = chat.open(f"{name}: @mock shell {script}\n@mock say finished")
        thread.question()
        self.look_at_everything(began)
        thread.allow()
        thread.wait("^finished$")
        self.assertEqual(thread.settled(thread.id), CHECK, thread.describe())

        # B49: what the guest saw of itself, and what it was given to find.
        inside = (self.world.project(name) / "seen.txt").read_bytes()
        self.assertIn(b"PRODUCTION_API_KEY=", inside)
        self.assertEqual(self.search.bytes("the guest", inside), [])
        self.assertNotIn(b"INCUS_DIR", inside)
        self.check_replaced(thread)
        self.look_at_memory()

        chat.terminate()
        skipped = {self.world.creds, os.path.join(self.world.state, "creds.env")}
        found, count = self.search.files(self.world.state, newer=began, skip=skipped)
        for path in (os.path.join(self.world.dir, entry) for entry in os.listdir(self.world.dir)):
            if os.path.isfile(path) and path not in skipped:
                found += self.search.file(path)
        self.assertEqual(found, [])
        self.assertGreater(count, 3)
        # All that the chat was ever sent, and what people see there.
        sent = pathlib.Path(chat.record).read_bytes()
        self.assertIn(b"finished", sent)
        self.assertEqual(self.search.bytes("sent to the chat", sent), [])

    def check_replaced(self, thread):
        """A key that is replaced is used from the next turn on, without a restart: first a wrong one, then the right one."""
        def set_key(value):
            done = subprocess.run([harness.EB, "--config", self.world.config, "creds", "set", "model-key"], env=self.world.env,
                                  input=value, text=True, capture_output=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            time.sleep(1.5)

        def key_works():
            seen = len(self.world.model.requests())
            prompt = thread.say("@mock say again")
            thread.settled(prompt)
            rows = [row for row in self.world.model.requests()[seen:] if row.get("auth_header")]
            self.assertTrue(rows, thread.describe())
            return rows[0]["key_ok"]

        self.assertTrue(key_works())
        set_key("sk-wrong-" + "0" * 32)
        self.assertFalse(key_works())
        set_key(self.world.model.key)
        self.assertTrue(key_works())
