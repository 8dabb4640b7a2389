#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A client that thousands of bots use must find nothing strange in the stand-in: discord.py logs in, reads a message,
replies, opens a thread, registers a command and answers it, handles a button, and resumes after its connection was cut.
Prints TAP.

    check_discord_py.py PROGRAM
"""

import asyncio
import os
import sys

SYSTEM_PYTHON = "/usr/bin/python3"  # what Debian's packages are for

try:
    import discord
    import yarl
except ImportError:
    if os.path.exists(SYSTEM_PYTHON) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON):
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
    print("1..0 # SKIP python3-discord is not installed")
    sys.exit(0)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from standin import STEP, Checks, Standin  # noqa: E402

TOKEN = "mock-discord-py"


class Button(discord.ui.View):
    pressed = None

    @discord.ui.button(label="Allow", custom_id="allow")
    async def allow(self, interaction, button):
        Button.pressed = interaction.user.name
        await interaction.response.edit_message(content="allowed", view=None)


class Bot(discord.Client):
    def __init__(self):
        super().__init__(intents=discord.Intents(guilds=True, messages=True, message_content=True, reactions=True))
        self.tree = discord.app_commands.CommandTree(self)
        self.resumed = 0
        self.seen = []

        @self.tree.command(name="status", description="How it is", guild=discord.Object(100000000000000001))
        async def status(interaction, about: str):
            await interaction.response.defer(ephemeral=True)
            await interaction.followup.send(f"fine: {about}", ephemeral=True)

    async def setup_hook(self):
        await self.tree.sync(guild=discord.Object(100000000000000001))

    async def on_resumed(self):
        self.resumed += 1

    async def on_message(self, message):
        self.seen.append(message.content)
        if message.author == self.user or message.content != "please":
            return
        await message.add_reaction("\N{HOURGLASS WITH FLOWING SAND}")
        thread = await message.create_thread(name="errand")
        await thread.send("may I?", view=Button())
        await message.reply("on it", file=discord.File(__file__, "note.txt"))


async def session(standin, checks):
    def blocking(function, *args, **kwargs):
        return asyncio.get_running_loop().run_in_executor(None, lambda: function(*args, **kwargs))

    discord.http.Route.BASE = standin.where["url"]
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(standin.where["origin"].replace("http", "ws") + "/gateway")
    bot = Bot()
    task = asyncio.create_task(bot.start(TOKEN))
    await asyncio.wait_for(bot.wait_until_ready(), STEP)
    checks.ok(bot.user.name == "errand-box", "logged in")
    channel = bot.get_channel(100000000000000010)
    checks.ok(channel is not None and channel.permissions_for(channel.guild.me).manage_threads,
              "sees the channel and its own permissions in it")
    await blocking(standin.call, "say", content="please")
    (thread,) = await blocking(standin.wait, "threads", name="errand")
    (asked,) = await blocking(standin.wait, "messages", channel=thread["id"], components=True)
    await blocking(standin.wait, "messages", reaction="\N{HOURGLASS WITH FLOWING SAND}")
    (reply,) = await blocking(standin.wait, "messages", text="on it", attachments=True)
    checks.ok(reply["type"] == 19 and reply["attachments"][0]["filename"] == "note.txt", "replied with a file")
    await blocking(standin.call, "press", channel=thread["id"], message=asked["id"], custom_id="allow")
    (closed,) = await blocking(standin.wait, "messages", channel=thread["id"], text="^allowed$")
    checks.ok(Button.pressed == "alice" and closed["components"] == [], "handled a button and edited its message")
    command = await blocking(standin.call, "command", name="status", options={"about": "rain"})
    (done,) = await blocking(standin.wait, "interactions", id=command["id"], answered=True)
    checks.ok(done["text"] == "fine: rain" and done["ephemeral"], "answered a slash command for one person alone")
    await blocking(standin.call, "drop", code=0)
    await blocking(standin.call, "say", content="while away")
    await blocking(standin.wait, "stats", name="resumed")
    for _ in range(100):
        if bot.resumed and "while away" in bot.seen:
            break
        await asyncio.sleep(0.1)
    checks.ok(bot.resumed == 1 and bot.seen.count("while away") == 1, "resumed and got what it had missed, once")
    await bot.close()
    task.cancel()
    stats = await blocking(standin.call, "stats")
    checks.ok(stats["identifies"] == 1 and stats["limited"] == 0, "identified once, was never limited")
    wrong = {row["rule"] for row in (await blocking(standin.call, "violations"))["items"]}
    # Ids as numbers, no allowed_mentions, a library's own name on interactions: Discord takes that, our bot must not.
    checks.ok("allowed-mentions" in wrong and not wrong - {"allowed-mentions", "id-as-number", "user-agent"},
              f"nothing else to complain of: {sorted(wrong)}")


def main():
    standin = Standin(sys.argv[1], TOKEN)
    checks = Checks()
    try:
        asyncio.run(asyncio.wait_for(session(standin, checks), 4 * STEP))
    except (AssertionError, asyncio.TimeoutError) as error:
        checks.ok(False, f"it went on to the end: {error!r}")
        print(f"# {standin.call('refusals')['items']}\n# {standin.call('gateway')['items']}")
    checks.ok(standin.stop() == 0, "the stand-in ends with SIGTERM")
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
