# SPDX-License-Identifier: MIT
"""Errands in the middle of everything when the service ends, is killed, or loses Discord for half a minute. Each way
meets one errand in each state, and people who go on talking meanwhile."""

import secrets
import time
import unittest

import harness
from discord_world import CHECK, CROSS, STOP, Chat, Thread, together

WORDS = " ".join(f"w{n}" for n in range(1, 41))
ENDLESS = " ".join(f"w{n}" for n in range(1, 381))  # of a turn that does not end by itself in time
AWAY = 30  # seconds without Discord
PAUSE = 60  # longest pause between two tries to reach it (DISCORD_BACKOFF_MAX)


class Middle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.chat = Chat(cls.world).start()
        cls.addClassCleanup(cls.chat.close)

    def setUp(self):
        self.tag = secrets.token_hex(2)
        self.threads = {}

    def open(self, name, prompt, **args):
        self.threads[name] = self.chat.open(f"{name}-{self.tag}: {prompt}", **args)
        return self.threads[name]

    def file(self, name, path):
        found = self.world.project(f"{name}-{self.tag}") / path
        return found.read_text(encoding="utf-8") if found.exists() else None

    # Into the middle.

    def idle(self):
        thread = self.open("idle", "@mock say begun")
        self.assertEqual(thread.settled(thread.id), CHECK)

    def stopped(self):
        thread = self.open("stopped", "@mock say begun")
        self.assertEqual(thread.settled(thread.id), CHECK)

    def sends(self):
        thread = self.open("sends", "@mock shell echo numbers > numbers.txt\n@mock say counted")
        thread.allow()
        self.assertEqual(thread.settled(thread.id), CHECK)

    def asked(self):
        self.open("asked", "@mock write /workspace/a.txt yes\n@mock say written").question()

    def tool(self):
        thread = self.open("tool", f"@mock shell sleep {self.sleep}; echo ran >> ran.txt\n@mock say tool over")
        thread.allow()
        thread.wait("`execute`")

    def text(self):
        self.open("text", f"@mock slow 400\n@mock say {self.words}").wait("^w1 ")

    def diff(self):
        thread = self.open("diff", f"@mock write /workspace/d.txt line\n@mock slow 400\n@mock say {self.words}")
        thread.allow()
        thread.wait(r"^\+line")

    def all_in_the_middle(self, words=ENDLESS, sleep=300):
        self.words, self.sleep = words, sleep
        together(self.idle, self.stopped, self.sends, self.asked, self.tool, self.text, self.diff)
        self.open("files", "@mock shell cat attachments/n.txt > got.txt\n@mock say copied",
                  attachments=[{"name": "n.txt", "content_type": "text/plain", "text": "from a person"}])
        self.open("starting", "@mock shell echo ran >> ran.txt\n@mock say started")
        self.threads["stopped"].say("!stop")
        self.threads["sends"].say("!file numbers.txt")

    def said_while_away(self):
        idle = self.threads["idle"]
        self.said = [idle.say(f"@mock say away-{n}") for n in (1, 2, 3)]
        self.threads["away"] = Thread(self.chat, self.chat.say(f"away-{self.tag}: @mock say heard of it"))

    # And out of it.

    def carried_on(self, name):
        """Answers its questions with Allow until the errand's prompt is settled."""
        thread = self.threads[name]
        for _ in range(600):
            found = self.chat.discord.items("messages", id=thread.id)[0]
            own = [entry["emoji"]["name"] for entry in found.get("reactions", []) if entry["me"]]
            if own and own != ["\u23f3"]:
                return thread.settled(thread.id)
            for message in thread.messages(components=True):
                try:
                    thread.press(message, "^(allow|yes)")
                except AssertionError:
                    pass  # answered meanwhile
            time.sleep(0.2)
        raise AssertionError(f"{name} never ends\n{thread.describe()}")

    def heard_in_order(self):
        idle = self.threads["idle"]
        self.assertEqual([idle.settled(message) for message in self.said], [CHECK] * 3, idle.describe())
        order = [idle.wait(f"^away-{n}$")["id"] for n in (1, 2, 3)]
        self.assertEqual(order, sorted(order, key=int), idle.describe())
        self.assertEqual(idle.count("away-[123]"), 3, idle.describe())
        away = self.threads["away"]
        self.assertEqual(away.settled(away.id), CHECK)
        away.wait(r"done \|")  # what is said may be later than the reaction
        self.assertEqual(away.count("heard of it"), 1, away.describe())

    def begun_once(self):
        self.assertEqual(self.carried_on("starting"), CHECK, self.threads["starting"].describe())
        self.assertEqual(self.file("starting", "ran.txt"), "ran\n", self.threads["starting"].describe())

    def file_arrived(self):
        self.assertEqual(self.carried_on("files"), CHECK, self.threads["files"].describe())
        self.assertEqual(self.file("files", "got.txt"), "from a person", self.threads["files"].describe())

    def file_came(self):
        """The file that was asked for at the last moment, once; or the word that it must be asked for again."""
        thread = self.threads["sends"]
        told = harness.wait_until(lambda: thread.messages(attachments=True) or thread.count("in the middle of this"), 60)
        self.assertTrue(told, thread.describe())
        names = [file["filename"] for message in thread.messages(attachments=True) for file in message["attachments"]]
        self.assertIn((names, thread.count("in the middle of this")), ((["numbers.txt"], 0), ([], 1)), thread.describe())

    def is_archived(self):
        """!stop was carried out, or the word that it must be said again is there."""
        thread = self.threads["stopped"]
        ended = harness.wait_until(lambda: self.chat.discord.items("threads", id=thread.id, archived=True)
                                   or thread.count("in the middle of this"), 60)
        self.assertTrue(ended, thread.describe())

    def question_lived(self):
        """Its button still works; what comes of it is told."""
        thread = self.threads["asked"]
        asked = thread.messages(components=True)
        self.assertEqual(len(asked), 1, thread.describe())
        answer = thread.press(asked[0], "^allow$")
        self.assertTrue(answer["acked"])
        thread.wait(r"\*\*Allow\*\*")

    def broken_off(self, name):
        thread = self.threads[name]
        self.assertEqual(thread.settled(thread.id), self.broken, thread.describe())
        thread.wait("in the middle of this")
        self.assertEqual(thread.count("in the middle of this"), 1, thread.describe())

    def tool_broken_off(self):
        self.broken_off("tool")
        self.assertIsNone(self.file("tool", "ran.txt"))

    def goes_on(self, name):
        """A thread whose prompt was broken off takes the next one."""
        thread = self.threads[name]
        second = thread.say("@mock say going on")
        self.assertEqual(thread.settled(second), CHECK, thread.describe())

    def after_restart(self, broken):
        """@broken: the reaction of a prompt that was at work."""
        self.broken = broken
        together(self.heard_in_order, self.begun_once, self.file_arrived, self.file_came, self.is_archived, self.question_lived,
                 self.tool_broken_off, lambda: self.broken_off("text"), lambda: self.broken_off("diff"))
        self.goes_on("text")
        self.assertEqual(self.chat.manners(), [])

    def test_terminated(self):
        self.all_in_the_middle()
        self.chat.terminate()
        self.said_while_away()
        self.chat.start()
        self.after_restart(STOP)

    def test_killed(self):
        self.all_in_the_middle()
        self.chat.kill()
        self.said_while_away()
        self.chat.discord.call("forget-sessions")  # so that what was missed is read back
        self.chat.start()
        self.after_restart(CROSS)

    def test_cut(self):
        self.all_in_the_middle(words=WORDS, sleep=8)
        self.chat.discord.wait("requests", route="cdn", path="/n.txt$")  # files have a service of their own
        logins = self.chat.logins()
        self.chat.discord.call("refuse", seconds=AWAY, drop=True)
        time.sleep(AWAY / 3)
        self.said_while_away()
        self.assertTrue(harness.wait_until(lambda: self.chat.logins() > logins, AWAY + 2 * PAUSE), self.chat.logged()[-2000:])
        together(self.heard_in_order, self.begun_once, self.file_arrived, self.file_came, self.is_archived, self.nothing_lost)
        self.assertEqual(self.chat.manners(), [])

    def nothing_lost(self):
        for name in ("asked", "tool", "text", "diff"):
            thread = self.threads[name]
            self.assertEqual(self.carried_on(name), CHECK, thread.describe())
            thread.wait(r"done \|")
        self.assertEqual((self.file("tool", "ran.txt"), self.file("asked", "a.txt"), self.file("diff", "d.txt")), ("ran\n", "yes", "line"))
        for name in ("text", "diff"):
            said = " ".join(text for text in self.threads[name].texts() if text.startswith("w"))
            self.assertEqual(said.split(), WORDS.split(), self.threads[name].describe())
        self.assertEqual(self.threads["tool"].count("tool over"), 1)
