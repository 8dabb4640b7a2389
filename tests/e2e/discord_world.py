# SPDX-License-Identifier: MIT
"""What the Discord tests share: the stand-in, the service that is connected to it, and people who use it. Nothing is
looked at but what people would see, and what the stand-in says about the bot's manners."""

import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import harness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib" / "discord-standin"))
import standin  # noqa: E402

CHANNEL = "100000000000000010"
ALICE, BOB, CAROL = "100000000000000101", "100000000000000102", "100000000000000103"
HOURGLASS, CHECK, CROSS, STOP = "\u23f3", "\u2705", "\u274c", "\u23f9\ufe0f"
STEP = 120


def together(*jobs):
    """Runs all at once, each in a thread of its own; what goes wrong in any of them is told for all."""
    wrong = []

    def run(job):
        try:
            job()
        except Exception as error:  # noqa: BLE001 - told below
            wrong.append(f"{getattr(job, '__name__', job)}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise AssertionError("\n".join(wrong))


class Chat:
    """A service on a stand-in of Discord."""

    def __init__(self, world, operators=(), more="", verbose="-vv", **session):
        self.world, self.verbose = world, verbose
        # All that it ever gets from the service.
        self.record = os.path.join(world.dir, f"discord-{time.monotonic_ns()}.record")
        self.discord = standin.Standin(str(harness.BUILD / "tests/lib/discord-standin/discord-standin"), world.chat_token,
                                       record=self.record)
        self.log = open(os.path.join(world.dir, f"serve-{time.monotonic_ns()}.log"), "w+", encoding="utf-8")
        self.process = None
        session.setdefault("agent", "claude-agent-acp")
        session.setdefault("memory", "1GiB")
        world.write_config(extra="\n".join([
            "[plugin.chat-discord]", 'token = "cred:chat-token"', f'channel_id = "{CHANNEL}"',
            f'allowed_user_ids = ["{ALICE}", "{BOB}"]', f"operator_user_ids = {list(operators)}".replace("'", '"'),
            "[limits]", "max_live_sessions = 16", "max_concurrent_turns = 16", more]), **session)

    def start(self):
        before = self.discord.call("stats")
        env = dict(self.world.env, ERRAND_DISCORD_MOCK_URL=self.discord.where["url"])
        self.process = subprocess.Popen([harness.EB, self.verbose, "--config", self.world.config, "serve"], env=env, text=True,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        came_by = before["ready"] + before["resumed"]
        up = harness.wait_until(lambda: self.process.poll() is not None or self.logins() > came_by, 60)
        if not up or self.process.poll() is not None:
            raise AssertionError("the service did not come up:\n" + self.logged())
        return self

    def logins(self):
        stats = self.discord.call("stats")
        return stats["ready"] + stats["resumed"]

    def terminate(self):
        self.process.terminate()
        code = self.process.wait(60)
        assert code == 0, f"exit {code}\n{self.logged()}"

    def kill(self):
        self.process.kill()
        self.process.wait(60)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
        self.discord.stop()
        self.log.close()

    def logged(self, lines=40):
        self.log.flush()
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-lines:])

    def say(self, content, **args):
        """A message in the channel, or with channel= in a thread; its id."""
        return self.discord.call("say", content=content, **args)["id"]

    def open(self, content, **args):
        """An errand: its thread, which has the id of the message."""
        thread = Thread(self, self.say(content, **args))
        thread.appears()
        return thread

    def command(self, name, channel=CHANNEL, user=ALICE, **options):
        """A slash command; what was answered, with ack_ms, ephemeral and text."""
        given = self.discord.call("command", name=name, channel=channel, user=user, options=options)["id"]
        return self.discord.wait("interactions", id=given, answered=True, seconds=STEP)[0]

    def manners(self, lost_answers=0):
        """What the bot did that it must not do, one line each. Each answer that is lost takes its rate limit headers
        along, so after it one request may come too soon."""
        stats = self.discord.call("stats")
        wrong = [f"violation {row['rule']}: {row['detail']}" for row in self.discord.items("violations")]
        wrong += [f"told {row['users']} {row['roles']} {row['everyone']}: {row['content']}" for row in self.discord.items("pings")
                  if row["everyone"] or row["roles"] or set(row["users"]) - {ALICE, BOB} or row["edit"]]
        wrong += [f"{name}: {stats[name]}" for name in ("identified_too_soon", "heartbeat_timeouts") if stats[name]]
        wrong += [f"limited: {stats['limited']}"] if stats["limited"] > lost_answers else []
        return wrong


class Thread:
    """One errand as the people in it see it."""

    def __init__(self, chat, number):
        self.chat, self.id = chat, number
        self.discord = chat.discord

    def appears(self, seconds=STEP):
        return self.discord.wait("threads", id=self.id, seconds=seconds)[0]

    def say(self, content, **args):
        return self.chat.say(content, channel=self.id, **args)

    def messages(self, **args):
        return self.discord.items("messages", channel=self.id, **args)

    def wait(self, text, seconds=STEP, **args):
        """The last message of the bot that matches."""
        args.setdefault("author", "bot")
        try:
            return self.discord.wait("messages", channel=self.id, text=text, seconds=seconds, **args)[-1]
        except AssertionError as error:
            raise AssertionError(f"no message like {text!r}\n{self.describe()}") from error

    def reacted(self, message, symbol, seconds=STEP):
        """The prompt, once it carries that reaction."""
        place = CHANNEL if message == self.id else self.id
        try:
            return self.discord.wait("messages", channel=place, id=message, reaction=symbol, seconds=seconds)[0]
        except AssertionError as error:
            raise AssertionError(f"no {symbol} on {message}\n{self.describe()}") from error

    def settled(self, message, seconds=STEP):
        """The one reaction that a prompt ends with."""
        place = CHANNEL if message == self.id else self.id
        try:
            found = self.discord.wait("messages", channel=place, id=message, reactions=[CHECK, CROSS, STOP], seconds=seconds)[0]
        except AssertionError as error:
            raise AssertionError(f"{message} has no final reaction\n{self.describe()}") from error
        own = [entry["emoji"]["name"] for entry in found["reactions"] if entry["me"]]
        if len(own) != 1:
            raise AssertionError(f"{message} has {own}\n{self.describe()}")
        return own[0]

    def question(self, count=1, seconds=STEP, **args):
        """The open question: a message with buttons."""
        try:
            return self.discord.wait("messages", channel=self.id, author="bot", components=True, count=count, seconds=seconds,
                                     **args)[-1]
        except AssertionError as error:
            raise AssertionError(f"no question\n{self.describe()}") from error

    def press(self, message, label, user=ALICE):
        """A button; how its interaction was answered."""
        given = self.discord.call("press", channel=self.id, message=message["id"], label=label, user=user)["id"]
        return self.discord.wait("interactions", id=given, acked=True, seconds=10)[0]

    def allow(self, **args):
        return self.press(self.question(**args), "^(allow|yes)")

    def insist(self, label, tries=10):
        """Presses until it works, as people do when the screen says that the interaction failed."""
        asked = self.question()
        for _ in range(tries):
            try:
                given = self.discord.call("press", channel=self.id, message=asked["id"], label=label)["id"]
                self.discord.wait("interactions", id=given, acked=True, seconds=4)
                return
            except standin.Refused:
                return  # it was taken after all: the buttons are gone
            except AssertionError:
                continue
        raise AssertionError(f"no press was answered\n{self.describe()}")

    def texts(self):
        return [message["content"] for message in self.messages(author="bot")]

    def count(self, pattern):
        return sum(len(re.findall(pattern, text)) for text in self.texts())

    def describe(self):
        lines = []
        for message in self.messages(deleted=True):
            marks = "".join(entry["emoji"]["name"] for entry in message.get("reactions", []))
            extra = " (buttons)" if message["components"] else ""
            extra += " (deleted)" if message["deleted"] else ""
            extra += f" ({len(message['attachments'])} files)" if message["attachments"] else ""
            lines.append(f"{message['author']['username']}: {message['content']!r}{extra} {marks}")
        return "\n".join(lines) + "\n--- log\n" + self.chat.logged()
