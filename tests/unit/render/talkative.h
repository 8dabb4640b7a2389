/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

/** TALKATIVE_SECRET: is in what the agent says, often over two pieces. */
#define TALKATIVE_SECRET "sk-talkative-0123456789abcdef"
/** TALKATIVE_GROUP: updates of one step: a call and its changes, thoughts, a plan, text; in half of them a diff. */
#define TALKATIVE_GROUP 50

/** talkative_update: (transfer full): session/update number @i of an agent that never rests, as JSON. */
char *talkative_update(guint i);
