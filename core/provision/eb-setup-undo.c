/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "core/provision/eb-setup-private.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-manager.h"

/* Taking back what setup made: the steps in reverse order, each entry of the ledger newest first. */

gboolean
eb_setup_begin(EbSetup *self, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (self->ledger != NULL)
        return TRUE;
    /* A daemon in a directory of its own is none of the system's units. */
    if (!self->private) {
        self->supervisor = eb_supervisor_find(NULL, error);
        if (self->supervisor == NULL)
            return FALSE;
    }
    self->ledger = eb_setup_ledger_load(self->ledger_dir, &failure);
    if (self->ledger == NULL && self->options.plan && geteuid() != 0)
        self->ledger = eb_setup_ledger_new();
    if (self->ledger != NULL)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
}

gboolean
eb_setup_record(EbSetup *self, const EbSetupStep *step, const char *kind, const char *name, const char *before,
                const char *made, GError **error)
{
    gboolean changed = FALSE;

    if (!eb_setup_ledger_add(self->ledger, step->id, kind, name, before, made, &changed, error))
        return FALSE;
    return !changed || eb_setup_ledger_save(self->ledger, self->ledger_dir, error);
}

static gboolean
undo_entry(EbSetup *self, const EbSetupStep *step, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *kind = g_strdup(entry->kind);
    g_autofree char *name = g_strdup(entry->name);

    switch ((step->undo != NULL ? step->undo : eb_setup_undo_place)(self, entry, findings, error)) {
    case EB_UNDO_FAILED:
        return FALSE;
    case EB_UNDO_KEPT:
        return TRUE;
    case EB_UNDO_DONE:
        break;
    }
    if (self->options.plan)
        return TRUE;
    eb_setup_ledger_remove(self->ledger, kind, name);
    return eb_setup_ledger_save(self->ledger, self->ledger_dir, error);
}

static gboolean
undo_step(EbSetup *self, const EbSetupStep *step, GError **error)
{
    g_autoptr(GPtrArray) entries = eb_setup_ledger_list(self->ledger, step->id);
    gint64 start = g_get_monotonic_time();
    g_autoptr(GError) failure = NULL;
    EbFindings findings = {0};
    EbSetupResult result = EB_SETUP_OK;
    EbSetupRow *row;

    if (entries->len == 0)
        return TRUE;
    eb_findings_reset(&findings);
    for (guint i = 0; i < entries->len && failure == NULL; i++)
        undo_entry(self, step, entries->pdata[i], &findings, &failure);
    if (findings.changes->len > 0)
        result = self->options.plan ? EB_SETUP_PLANNED : EB_SETUP_CHANGED;
    row = eb_setup_add_row(self, step, &findings, result, start, failure);
    if (self->progress != NULL)
        self->progress(row->title, row, self->progress_data);
    if (failure == NULL)
        return TRUE;
    g_propagate_prefixed_error(error, g_steal_pointer(&failure), "taking back \"%s\": ", row->title);
    return FALSE;
}

static gboolean
refuse(const char *what, const char *how, GError **error)
{
    eb_set_error(error, EB_ERROR_BUSY, "provision.sessions-run", "%s: end it first (%s), then run setup --undo again",
                 what, how);
    return FALSE;
}

/* Nothing is taken away under somebody's hands. An idle service that setup started is no session: its step stops it. */
static gboolean
check_idle(EbSetup *self, GError **error)
{
    g_autofree char *tries = g_build_filename(self->state_dir, "try", NULL);
    g_autoptr(GPtrArray) units = eb_setup_ledger_list(self->ledger, "start");
    g_autofree char *guest = eb_setup_find_running_guest(self);
    g_autofree char *text = NULL;
    g_autoptr(GDir) dir = g_dir_open(tries, 0, NULL);
    const char *name;

    /* Before the guests, which may be theirs: `down` ends no try. */
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *root = g_build_filename(tries, name, NULL);
        if (eb_dir_lock_is_held(root, EB_STATE_LOCK_FILE)) {
            text = g_strdup_printf("the try %s runs", name);
            return refuse(text, "Ctrl-C in its terminal", error);
        }
    }
    if (guest != NULL) {
        text = g_strdup_printf("the guest %s of a session runs", guest);
        return refuse(text, "errand-box down", error);
    }
    if (units->len == 0 && eb_dir_lock_is_held(self->state_dir, EB_STATE_LOCK_FILE)) {
        text = g_strdup_printf("the service that holds %s runs", self->state_dir);
        return refuse(text, "errand-box down", error);
    }
    return TRUE;
}

/* What stands in the container daemon can be taken back only with the daemon's help. */
static gboolean
start_daemon_for_undo(EbSetup *self, GError **error)
{
    static const char *const KINDS[] = {"pool", "project", "project-keys", "profile", "network", "image", NULL};
    g_autoptr(GPtrArray) entries = eb_setup_ledger_list(self->ledger, NULL);
    g_autoptr(GError) failure = NULL;
    EbFindings findings = {0};
    gboolean needed = FALSE;
    gboolean ok = TRUE;

    for (guint i = 0; i < entries->len && !needed; i++)
        needed = g_strv_contains(KINDS, ((EbLedgerEntry *)entries->pdata[i])->kind);
    if (!needed)
        return TRUE;
    eb_findings_reset(&findings);
    if (!eb_setup_step_daemon.check(self, &findings, &failure) ||
        (findings.changes->len > 0 && !eb_setup_step_daemon.apply(self, &findings, &failure))) {
        g_propagate_prefixed_error(error, g_steal_pointer(&failure),
                                   "incusd is needed to take back what setup made in it: ");
        ok = FALSE;
    }
    g_ptr_array_unref(findings.changes);
    g_ptr_array_unref(findings.notes);
    return ok;
}

gboolean
eb_setup_undo(EbSetup *self, GError **error)
{
    guint n;
    const EbSetupStep *const *steps = eb_setup_steps(&n);
    int lock = -1;
    gboolean ok;

    if (!self->options.plan) {
        if (geteuid() != 0) {
            eb_set_error(error, EB_ERROR_DENIED, "provision.root",
                         "only root can take back what setup made (--plan --undo shows it)");
            return FALSE;
        }
        lock = eb_setup_take_lock(self, error);
        if (lock < 0)
            return FALSE;
    }
    ok = eb_setup_begin(self, error) &&
         (self->options.plan || (check_idle(self, error) && start_daemon_for_undo(self, error)));
    for (guint i = n; ok && i > 0; i--)
        ok = undo_step(self, steps[i - 1], error);
    if (lock >= 0)
        close(lock);
    return ok;
}
