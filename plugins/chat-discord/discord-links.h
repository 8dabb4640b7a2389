/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** DiscordLinkTargets: targets of reference links by their label, made by discord_link_targets_read(). */
typedef GHashTable DiscordLinkTargets;

/** DISCORD_LINK_TARGETS_MAX: definitions that are remembered of one text; further ones stay what they are, visible. */
#define DISCORD_LINK_TARGETS_MAX 256

/** discord_link_targets_new: (transfer full) */
DiscordLinkTargets *discord_link_targets_new(void);
/** discord_link_targets_read: @line: without its end; when it is "[label]: url", remembered. */
void discord_link_targets_read(DiscordLinkTargets *self, const char *line, gsize length);

/**
 * discord_links_write_out: appends @text (@length bytes of clean UTF-8 without fenced code) to @out with its masked links
 * written out and its unpaired backticks escaped. Pure.
 */
void discord_links_write_out(GString *out, const char *text, gsize length, DiscordLinkTargets *targets);
/** discord_links_break: appends @text to @out with DISCORD_ZWSP in whatever could be a masked link. */
void discord_links_break(GString *out, const char *text, gsize length);

G_END_DECLS
