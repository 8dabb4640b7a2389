/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/provision/eb-image-ensure.h"
#include "core/provision/eb-pin-cache.h"
#include "core/provision/eb-setup-private.h"

/* The guest image, through the container backend that sessions will use. */

#define CHECK_MS 30000

typedef struct {
    EbSetup *setup;
    GAsyncResult *result; /* (owned) */
    gboolean done;
} Wait;

static void
on_ready(GObject *source, GAsyncResult *result, gpointer data)
{
    Wait *wait = data;

    wait->result = g_object_ref(result);
    wait->done = TRUE;
}

static GAsyncResult *
wait_for(Wait *wait)
{
    wait->setup->options.wait(&wait->done, wait->setup->options.backend_data);
    return wait->result;
}

static void
on_progress(const char *stage, guint seconds, gboolean done, gpointer data)
{
    Wait *wait = data;

    if (done)
        eb_setup_say(wait->setup, "guest image: %s: done in %u s", stage, seconds);
    else if (seconds == 0)
        eb_setup_say(wait->setup, "guest image: %s", stage);
    else
        eb_setup_say(wait->setup, "guest image: %s: %u s", stage, seconds);
}

/* TRUE with *@backend NULL: there is none to ask, which a plan and a test may live with. */
static gboolean
get_backend(EbSetup *self, EbContainerBackend **backend, GError **error)
{
    *backend = NULL;
    if (self->options.open_backend == NULL)
        return TRUE;
    *backend = self->options.open_backend(self->options.backend_data, error);
    return *backend != NULL;
}

static gboolean
check_image(EbSetup *self, EbFindings *findings, GError **error)
{
    EbContainerBackend *backend;
    Wait wait = {.setup = self};
    g_autoptr(GError) failure = NULL;
    g_autofree char *detail = NULL;
    gboolean current = FALSE, ok;

    if (!get_backend(self, &backend, self->options.plan ? &failure : error)) {
        /* The backend needs the project, which a plan does not make. */
        if (self->options.plan)
            eb_findings_change(findings, "make the guest image %s and import it (some minutes the first time)",
                               self->image);
        return self->options.plan;
    }
    if (backend == NULL) {
        eb_findings_note(findings, "no container backend was asked");
        return TRUE;
    }
    eb_image_check_async(self->options.paths, backend, self->image, NULL, CHECK_MS, self->options.cancellable, on_ready,
                         &wait);
    ok = eb_image_check_finish(wait_for(&wait), &current, &detail, &failure);
    g_object_unref(wait.result);
    if (!ok && !self->options.plan) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return FALSE;
    }
    if (!ok || !current)
        eb_findings_change(findings, "make the guest image %s and import it (some minutes the first time)%s%s",
                           self->image, detail != NULL ? ": " : "", detail != NULL ? detail : "");
    else if (detail != NULL)
        eb_findings_note(findings, "%s", detail);
    return TRUE;
}

/* The image, and the directories that built ones and what they are made from are kept in. */
static gboolean
record_image(EbSetup *self, GError **error)
{
    g_autofree char *images = eb_image_default_cache();
    g_autofree char *archives = eb_pin_cache_default_dir();
    const char *const caches[] = {images, archives};

    for (guint i = 0; i < G_N_ELEMENTS(caches); i++) {
        g_autofree char *above = g_path_get_dirname(caches[i]);
        if (!g_file_test(caches[i], G_FILE_TEST_EXISTS) &&
            (!eb_setup_place_directory(self, &eb_setup_step_image, above, error) ||
             !eb_setup_record(self, &eb_setup_step_image, "cache", caches[i], NULL, NULL, error)))
            return FALSE;
    }
    return eb_setup_record(self, &eb_setup_step_image, "image", self->image, NULL, eb_setup_get_project(self), error);
}

static EbUndone
undo_image(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    if (strcmp(entry->kind, "image") == 0)
        return eb_setup_undo_image(self, entry, findings, error);
    if (strcmp(entry->kind, "cache") != 0)
        return eb_setup_undo_place(self, entry, findings, error);
    if (!g_file_test(entry->name, G_FILE_TEST_IS_DIR))
        return EB_UNDO_DONE;
    eb_findings_change(findings, "%s what is kept in %s", self->options.plan ? "remove" : "removed", entry->name);
    if (!self->options.plan)
        eb_image_job_remove_tree(entry->name);
    return EB_UNDO_DONE;
}

static gboolean
apply_image(EbSetup *self, EbFindings *findings, GError **error)
{
    EbContainerBackend *backend;
    Wait wait = {.setup = self};
    g_autofree char *detail = NULL;
    gboolean changed = FALSE, ok;

    if (!get_backend(self, &backend, error) || !record_image(self, error))
        return FALSE;
    eb_image_ensure_async(self->options.paths, backend, self->image, NULL, NULL, on_progress, &wait,
                          self->options.cancellable, on_ready, &wait);
    ok = eb_image_ensure_finish(wait_for(&wait), &changed, &detail, error);
    g_object_unref(wait.result);
    return ok;
}

const EbSetupStep eb_setup_step_image = {
    .id = "image",
    .title = "guest image",
    .undo_hint = "it goes, and the built images that are kept",
    .check = check_image,
    .apply = apply_image,
    .undo = undo_image,
};
