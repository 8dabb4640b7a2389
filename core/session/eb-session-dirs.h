/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * The directories of a session:
 *
 *   <state_root>/sessions/<id>/         0700, the account's alone
 *     state/    the guest writes it: made here before there is a guest, never read or written by the host afterwards
 *     run/      0755, mounted read-only: launch, relay, the broker's socket
 *   <project_root>/<project>/           the guest writes it; the same rule
 *
 * All of it blocks: for workers.
 */
typedef struct {
    const char *state_root;
    const char *project_root; /* (nullable): projects are volumes */
    const char *id;
    const char *project;
    GBytes *launch, *relay; /* programs put into run/ */
    guint32 uid, gid;       /* of the account; only root changes owners */
    gboolean resume;        /* state/ must be there already */
    guint64 min_free;       /* bytes that must be free in state_root and project_root */
} EbSessionDirsPlan;

typedef struct {
    char *session; /* the session's own directory */
    char *state;
    char *run;
    char *project; /* (nullable) */
    gboolean made_project;
} EbSessionDirs;
void eb_session_dirs_free(EbSessionDirs *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSessionDirs, eb_session_dirs_free)

/** eb_session_dirs_make: checks free space, then makes what is missing; on failure what it made is gone again. */
EbSessionDirs *eb_session_dirs_make(const EbSessionDirsPlan *plan, GError **error);
/** eb_session_dirs_remove_run: run/ alone: at the end of a session that can be resumed. */
gboolean eb_session_dirs_remove_run(const char *state_root, const char *id, GError **error);
/** eb_session_dirs_remove: everything but the project. Absence is success. */
gboolean eb_session_dirs_remove(const char *state_root, const char *id, GError **error);
/** eb_session_dirs_remove_empty_project: the directory of a project when nothing is in it. */
void eb_session_dirs_remove_empty_project(const char *project_root, const char *project);
/** eb_session_dirs_list: (transfer full): ids of the directories there are, at most 10000; other names are left out. */
GPtrArray *eb_session_dirs_list(const char *state_root);
/** eb_session_dirs_make_private: makes @path (absolute) with mode 0700 when missing; it must be the account's own. */
gboolean eb_session_dirs_make_private(const char *path, guint32 uid, guint32 gid, GError **error);
/** EB_SESSION_HOME_ID_FILE: beside the locks: one random name a state directory, the label "home" of its guests. */
#define EB_SESSION_HOME_ID_FILE "home-id"
/** eb_session_home_id_read: (transfer full) (nullable): NULL when there is none yet. */
char *eb_session_home_id_read(const char *locks_dir);

G_END_DECLS
