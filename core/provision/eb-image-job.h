/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbImageProgress: what an image build is at; called in the main context of who started it, at the beginning of a stage,
 * about every five seconds of it, and at its end.
 * @stage: for people: "Debian trixie", "agent opencode"
 * @seconds: in this stage so far
 * @done: the stage has ended
 */
typedef void (*EbImageProgress)(const char *stage, guint seconds, gboolean done, gpointer user_data);

/** EbImageJob: what the steps of one build share. They run in a worker thread: nothing here touches a main loop. */
typedef struct {
    GCancellable *cancellable; /* (nullable) */
    EbImageProgress progress;  /* (nullable) */
    gpointer progress_data;
    GMainContext *context; /* where progress is called */
    char *log_path;        /* output of the programs run */
    char *stage;
    gint64 stage_start; /* monotonic, us */
} EbImageJob;

void eb_image_job_clear(EbImageJob *self);
/** eb_image_job_begin: begins a stage, ends the one before. @stage: (nullable): NULL: only ends. */
void eb_image_job_begin(EbImageJob *self, const char *stage);

/**
 * eb_image_job_run: runs a program to its end in mount and pid namespaces of its own, so that neither its mounts nor
 * its children outlive it, whatever ends it: its deadline, the cancellable, or the death of this program.
 * @argv: (array zero-terminated=1)
 * @output: (out) (optional) (transfer full): what it printed, at most 64 KiB
 *
 * Returns: FALSE with the last lines it printed in the message when it does not end with 0.
 */
gboolean eb_image_job_run(EbImageJob *self, const char *const *argv, guint deadline_s, char **output, GError **error);

/** eb_image_job_remove_tree: best effort, not cancelled. */
void eb_image_job_remove_tree(const char *path);

G_END_DECLS
