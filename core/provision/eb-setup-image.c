/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-ensure.h"
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

    if (!get_backend(self, &backend, error))
        return FALSE;
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

static gboolean
apply_image(EbSetup *self, EbFindings *findings, GError **error)
{
    EbContainerBackend *backend;
    Wait wait = {.setup = self};
    g_autofree char *detail = NULL;
    gboolean changed = FALSE, ok;

    if (!get_backend(self, &backend, error))
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
    .undo_hint = "incus image delete ALIAS --project PROJECT; rm -r the cache directory",
    .check = check_image,
    .apply = apply_image,
};
