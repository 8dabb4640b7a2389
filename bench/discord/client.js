// SPDX-License-Identifier: MIT
// The yardstick: discord.js with what a bot of this kind listens to. client.js PORT CHANNEL; prints one JSON line.
"use strict";
const fs = require("node:fs");
const { Client, GatewayIntentBits, Events } = require("discord.js");

const [port, channel] = process.argv.slice(2);
const rss = () => Number(/^Rss:\s+(\d+)/m.exec(fs.readFileSync("/proc/self/smaps_rollup", "latin1"))[1]);
const seconds = () => { const used = process.cpuUsage(); return (used.user + used.system) / 1e6; };
const client = new Client({
    intents: [GatewayIntentBits.Guilds, GatewayIntentBits.GuildMessages, GatewayIntentBits.MessageContent],
    rest: { api: `http://127.0.0.1:${port}/api` },
});
const seen = { messages: 0, edits: 0 };
let start = 0, startRss = 0, rest = 0;

const ours = (message) => message.channelId === channel || (message.channel?.isThread() && message.channel.parentId === channel);

client.on(Events.MessageCreate, (message) => {
    if (!ours(message) || message.author.bot || message.system || message.webhookId) return;
    if (message.content === "bench:begin") {
        startRss = rss();
        start = seconds();
        seen.messages = seen.edits = 0;
    } else if (message.content === "bench:end") {
        const used = seconds() - start;
        console.log(JSON.stringify({ cpu: used, rss_rest: rest, rss_begin: startRss, rss_end: rss(), threads: threads(), ...seen }));
        process.exit(0);
    } else {
        seen.messages++;
    }
});
client.on(Events.MessageUpdate, (before, message) => {
    if (ours(message) && !message.author?.bot && message.editedTimestamp) seen.edits++;
});
const threads = () => client.channels.cache.filter((c) => c.isThread()).size;
client.once(Events.ClientReady, () => setTimeout(() => { rest = rss(); }, 1000));
client.login("mock.bench.token");
