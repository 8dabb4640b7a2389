# SPDX-License-Identifier: MIT
"""Errands from Discord, ten and more at once: threads, real agents in real guests, questions, files, commands; while
every event of the gateway comes twice."""

import secrets
import time
import unittest

import discord_world
import harness
from discord_world import ALICE, BOB, CAROL, CHECK, CROSS, STOP, Chat, together


class Errand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.tag = secrets.token_hex(2)  # projects outlive a run
        cls.chat = Chat(cls.world).start()
        cls.addClassCleanup(cls.chat.close)

    def project(self, name):
        return self.world.project(name)

    # One errand each; all of them at once.

    def edit_and_command(self):
        """A button for the first question, its number for the second, then the end."""
        thread = self.chat.open(f"whole-{self.tag}: @mock write /workspace/hello.txt Hello-from-the-guest\n"
                                "@mock shell cat hello.txt > copy.txt; echo >> copy.txt; id -u >> copy.txt\n@mock say all done")
        thread.allow()
        thread.wait(r"^\+Hello-from-the-guest$")
        asked = thread.question()
        number = next(line.split(".")[0] for line in asked["content"].splitlines() if ". Allow" in line.replace("*", ""))
        time.sleep(1)  # a person reads it first: what was said before a question was there is no answer to it
        thread.say(number)
        thread.wait("^all done$")
        done = thread.wait(r"^<@\d+> done \| mock-model \|")
        self.assertEqual([user["id"] for user in done["mentions"]], [ALICE])
        self.assertEqual(thread.settled(thread.id), CHECK)
        self.assertEqual((self.project(f"whole-{self.tag}") / "copy.txt").read_text().split(), ["Hello-from-the-guest", "1000"])
        order = [thread.wait(text)["id"] for text in ("project `whole-", "`edit`", r"^\+Hello", "`execute`", "^all done$", "done \\|")]
        self.assertEqual(order, sorted(order, key=int), thread.describe())
        self.assertEqual(thread.count("all done"), 1, thread.describe())
        self.assertEqual([m for m in thread.messages(components=True)], [], thread.describe())
        thread.say("!stop")
        self.assertTrue(self.chat.discord.wait("threads", id=thread.id, archived=True))

    def edit_refused(self):
        thread = self.chat.open(f"refused-{self.tag}: @mock write /workspace/no.txt never\n@mock say finished")
        asked = thread.question()
        button = asked["components"][0]["components"][-1]["custom_id"]
        self.assertTrue(thread.press(asked, "reject|deny|no")["acked"])
        thread.settled(thread.id)
        # A screen that was behind still shows the button: the press is answered, and nothing comes of it.
        late = self.chat.discord.call("press", channel=thread.id, message=asked["id"], custom_id=button, stale=True)["id"]
        self.assertTrue(self.chat.discord.wait("interactions", id=late, acked=True))
        self.assertFalse((self.project(f"refused-{self.tag}") / "no.txt").exists())

    def files_in(self):
        files = [{"name": "../no te.txt", "content_type": "text/plain", "text": "from a person"},
                 {"name": "huge.bin", "bytes": 10, "claimed_size": 900000000}]
        thread = self.chat.open(f"files-{self.tag}: @mock shell cat attachments/* > got.txt\n@mock say copied", attachments=files)
        thread.wait("huge.bin")
        thread.allow()
        thread.wait("^copied$")
        self.assertEqual(thread.settled(thread.id), CHECK)
        self.assertEqual((self.project(f"files-{self.tag}") / "got.txt").read_text(), "from a person", thread.describe())
        self.assertEqual(sorted(path.name for path in self.project(f"files-{self.tag}").iterdir()), ["attachments", "got.txt"])

    def long_paste(self):
        text = f"paste-{self.tag}: @mock say read from the file\n" + "filler " * 600
        thread = self.chat.open("", attachments=[{"name": "message.txt", "content_type": "text/plain; charset=utf-8", "text": text}])
        thread.wait("^read from the file$")
        self.assertEqual(thread.settled(thread.id), CHECK)
        self.assertTrue(self.project(f"paste-{self.tag}").is_dir(), thread.describe())

    def files_out(self):
        thread = self.chat.open(f"out-{self.tag}: @mock shell seq 1 5000 > numbers.txt\n@mock say counted")
        thread.allow()
        thread.wait("^counted$")
        thread.settled(thread.id)
        thread.say("!file numbers.txt")
        sent = thread.wait("", attachments=True)["attachments"][0]
        self.assertEqual((sent["filename"], sent["size"]), ("numbers.txt", sum(len(f"{n}\n") for n in range(1, 5001))))
        shown = self.chat.command("ls", channel=thread.id)
        self.assertIn("numbers.txt", shown["text"])
        self.assertTrue(shown["ephemeral"])

    def interrupted(self):
        thread = self.chat.open(f"long-{self.tag}: @mock slow 500\n@mock say " + "word " * 200)
        thread.wait("word")
        done = self.chat.command("interrupt", channel=thread.id)
        self.assertTrue(done["acked"])
        self.assertEqual(thread.settled(thread.id), STOP)
        second = thread.say("@mock say after that")
        thread.wait("^after that$")
        self.assertEqual(thread.settled(second), CHECK)

    def queued(self):
        thread = self.chat.open(f"queue-{self.tag}: @mock slow 300\n@mock say " + "one " * 20)
        thread.wait("one")
        prompts = [thread.say(f"!then @mock say {word}") for word in ("second", "third", "fourth")]
        self.chat.discord.call("delete", channel=thread.id, message=prompts[1])
        self.chat.discord.call("edit", channel=thread.id, message=prompts[2], content="!then @mock say changed")
        self.assertEqual([thread.settled(prompts[0]), thread.settled(prompts[2])], [CHECK, CHECK], thread.describe())
        order = [thread.wait(text)["id"] for text in ("^one", "^second$", "^changed$")]
        self.assertEqual(order, sorted(order, key=int), thread.describe())
        self.assertEqual(thread.count("third|fourth"), 0, thread.describe())

    def guests(self):
        thread = self.chat.open(f"guests-{self.tag}: @mock say begun")
        thread.settled(thread.id)
        refused = thread.say("@mock say from bob", user=BOB)
        self.assertEqual(thread.settled(refused), CROSS)
        thread.say("!!! only people read this", user=BOB)
        self.chat.command("allow", channel=thread.id, person=BOB)
        taken = thread.say("@mock say bob is in", user=BOB)
        thread.wait("^bob is in$")
        self.assertEqual(thread.settled(taken), CHECK)
        self.assertEqual(thread.count("from bob|only people"), 0, thread.describe())

    def hostile_words(self):
        thread = self.chat.open(f"words-{self.tag}: @mock say @everyone @here <@{CAROL}> [click](https://example.org) \u202e ```")
        thread.wait("click")
        self.assertEqual(thread.settled(thread.id), CHECK)
        said = thread.wait("click")
        self.assertFalse(said["mention_everyone"] or said["mentions"], said)

    def much_text(self):
        thread = self.chat.open(f"much-{self.tag}: @mock big 9000")
        thread.wait(r"done \|")
        parts = [m for m in thread.messages(author="bot") if "xxx" in m["content"]]
        self.assertGreater(len(parts) + sum(len(m["attachments"]) for m in thread.messages(author="bot")), 1)
        self.assertTrue(all(len(m["content"]) <= 2000 for m in parts))

    def two_of_a_project(self):
        thread = self.chat.open(f"same-{self.tag}: @mock slow 300\n@mock say " + "word " * 20)
        thread.wait("word")
        second = self.chat.say(f"same-{self.tag}: @mock say never")
        self.assertEqual(discord_world.Thread(self.chat, second).settled(second), CROSS)

    def test_many_at_once(self):
        chat = self.chat
        chat.discord.call("event-fault", type="MESSAGE_CREATE", kind="duplicate", count=400)
        chat.discord.call("event-fault", type="INTERACTION_CREATE", kind="duplicate", count=5)
        together(self.edit_and_command, self.edit_refused, self.files_in, self.long_paste, self.files_out, self.interrupted,
                 self.queued, self.guests, self.hostile_words, self.much_text, self.two_of_a_project)
        acked = [row["ack_ms"] for row in chat.discord.items("interactions")]
        harness.log(f"{len(acked)} interactions, acknowledged within {max(acked):.0f} ms at most")
        self.assertEqual(chat.manners(), [])
        self.assertEqual([row for row in chat.discord.items("refusals") if row["status"] in (400, 401, 429)], [])

    def one_of_many(self, number):
        thread = self.chat.open(f"rough-{number}-{self.tag}: @mock shell echo {number} >> ran.txt\n@mock say over {number}")
        thread.insist("^allow$")
        thread.wait(f"^over {number}$")
        second = thread.say(f"@mock say again {number}")
        thread.wait(f"^again {number}$")  # the reaction goes its own way, and may be sooner
        self.assertEqual([thread.settled(thread.id), thread.settled(second)], [CHECK, CHECK], thread.describe())
        self.assertEqual((self.project(f"rough-{number}-{self.tag}") / "ran.txt").read_text(), f"{number}\n")
        self.assertEqual([thread.count(f"^{word} {number}$") for word in ("over", "again")], [1, 1], thread.describe())

    def test_rough_connection(self):
        """Answers that are lost or wrong, and connections that end in every way, while errands go on."""
        chat = self.chat
        for kind, count in (("lost", 6), ("502", 6), ("reset", 4), ("half", 2), ("429-shared", 3), ("bad-json", 2)):
            chat.discord.call("fault", path="^/channels/", kind=kind, count=count, skip=7, seconds=0.5)

        def shake():
            for code in (0, 4000, 1, 1001, 4009):
                time.sleep(3)
                chat.discord.call("drop", code=code)
            chat.discord.call("op", op=7, d=None)

        together(shake, *(lambda number=number: self.one_of_many(number) for number in range(4)))
        self.assertEqual(chat.manners(lost_answers=14), [])  # lost, reset, half and bad-json, above
