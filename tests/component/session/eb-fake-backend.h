/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbFakeBackend: a backend whose guests are files of a directory, so that another process finds them again, and whose
 * processes are real ones on this host: python agent.py.
 */
#define EB_TYPE_FAKE_BACKEND (eb_fake_backend_get_type())
G_DECLARE_FINAL_TYPE(EbFakeBackend, eb_fake_backend, EB, FAKE_BACKEND, GObject)

struct _EbFakeBackend {
    GObject parent_instance;
    char *dir;
    char *agent;                                             /* path of agent.py */
    GHashTable *execs;                                       /* (utf8 instance -> GPtrArray of EbExec) */
    gboolean fail_launch, fail_exec, fail_list, half_launch; /* half: leaves the instance and fails */
    gboolean degraded;
    gboolean full; /* says that memory is used up */
    guint launched, stopped, cleanups;
};

EbFakeBackend *eb_fake_backend_new(const char *dir, const char *agent);
/** eb_fake_backend_count: guests there are. */
guint eb_fake_backend_count(EbFakeBackend *self);
/** eb_fake_backend_vanish: all guests go away by themselves, as when the container service ends. */
void eb_fake_backend_vanish(EbFakeBackend *self);

G_END_DECLS
