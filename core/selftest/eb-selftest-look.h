/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbSelftestRow: a session as the database has it. Strings but id and state are nullable. */
typedef struct {
    char *id, *state, *run, *instance, *agent_session;
} EbSelftestRow;

/** EbSelftestMessage: a prompt as the journal has it. */
typedef struct {
    char *id, *body, *state; /* state: received, started, done */
    char *session;           /* (nullable): the one it was given to */
} EbSelftestMessage;

/**
 * EbSelftestLook: what there is of one state directory, seen from outside its service: the database read-only, the
 * directories, the kernel's tables. Instances are what the container backend lists.
 */
typedef struct {
    GPtrArray *rows;         /* (element-type EbSelftestRow) */
    GPtrArray *messages;     /* (element-type EbSelftestMessage) */
    guint open_questions;    /* that wait for an answer, of sessions that are not live */
    GHashTable *directories; /* (set of utf8): ids below sessions/ */
    GHashTable *whole;       /* (set of utf8): those with their state/ */
    GHashTable *running;     /* (set of utf8): those with a run/ */
    GPtrArray *locks;        /* (element-type utf8): names of the files in locks/ */
    GPtrArray *mounts;       /* (element-type utf8): mount points of something below the directory */
    GPtrArray *sockets;      /* (element-type utf8): bound below the directory, by whomever */
    GHashTable *given;       /* (utf8 prompt -> guint): how often an agent was given it, as the agents wrote down */
    GHashTable *instances;   /* (utf8 name -> utf8 run): those of this state directory */
} EbSelftestLook;

void eb_selftest_look_free(EbSelftestLook *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSelftestLook, eb_selftest_look_free)

/** EB_SELFTEST_MAX_PROMPTS_BYTES: of one file that an agent wrote; what is beyond it is not read. */
#define EB_SELFTEST_MAX_PROMPTS_BYTES (256 * 1024)

/** eb_selftest_look_new: (transfer full): nothing seen yet: for tests. */
EbSelftestLook *eb_selftest_look_new(void);
/**
 * eb_selftest_look: (transfer full) (nullable): @root: the state directory. Blocks.
 * @instances: (transfer full): utf8 name -> utf8 run
 */
EbSelftestLook *eb_selftest_look(const char *root, GHashTable *instances, GError **error);
/** eb_selftest_read_home: (transfer full) (nullable): the label "home" of guests of @root; NULL: it has none yet. */
char *eb_selftest_read_home(const char *root);
/** eb_selftest_list_mounts: (transfer full): @table: of /proc/self/mountinfo: mount points of what is below @root. */
GPtrArray *eb_selftest_list_mounts(const char *table, const char *root);
/** eb_selftest_list_sockets: (transfer full): @table: of /proc/net/unix: paths below @root. */
GPtrArray *eb_selftest_list_sockets(const char *table, const char *root);

G_END_DECLS
