// SPDX-License-Identifier: MIT
// A bot on discord.js for check_discord_js.py: discord-js.cjs ORIGIN; tells on stdout what it saw, one word a line.
"use strict";
const { ActionRowBuilder, ButtonBuilder, ButtonStyle, Client, Events, GatewayIntentBits } = require("discord.js");

const quiet = { parse: [] };
const client = new Client({
    intents: [GatewayIntentBits.Guilds, GatewayIntentBits.GuildMessages, GatewayIntentBits.MessageContent],
    rest: { api: `${process.argv[2]}/api` },
    allowedMentions: quiet,
});
const say = (word) => console.log(word);

client.once(Events.ClientReady, () => say("ready"));
client.on(Events.ShardResume, () => say("resumed"));
client.on(Events.MessageCreate, async (message) => {
    if (message.author.bot) return;
    say(`heard:${message.content}`);
    if (message.content !== "please") return;
    const thread = await message.startThread({ name: "errand", autoArchiveDuration: 1440 });
    const allow = new ButtonBuilder().setCustomId("allow").setLabel("Allow").setStyle(ButtonStyle.Success);
    await thread.send({ content: "may I?", components: [new ActionRowBuilder().addComponents(allow)] });
    await message.reply({ content: "on it", files: [{ attachment: Buffer.from("note"), name: "note.txt" }] });
});
client.on(Events.InteractionCreate, async (interaction) => {
    await interaction.update({ content: "allowed", components: [], allowedMentions: quiet });
    say(`pressed:${interaction.customId}:${interaction.user.username}`);
});
client.login("mock-discord-js");
