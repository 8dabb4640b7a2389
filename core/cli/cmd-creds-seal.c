/* SPDX-License-Identifier: MIT */
/* creds seal: what lies in plain files goes where it is encrypted, each value checked there before it goes here. */
#include "core/cli/eb-cli-creds.h"
#include "core/cli/eb-cli-value.h"

#include <string.h>

#define SEALED "sealed"

typedef struct {
    EbCli *cli;
    const EbExtension *sealed;
    JsonArray *moved;
    guint n_moved;
    gboolean replace;
} Seal;

static gboolean
rekey(const Seal *self, EbSecret *previous, GError **error)
{
    EbCredentialStore *store = EB_CREDENTIAL_STORE(self->sealed->object);
    g_auto(EbCliWait) wait = {0};

    eb_credential_store_rekey_async(store, previous, NULL, eb_cli_wait_ready, &wait);
    return eb_credential_store_rekey_finish(store, eb_cli_wait_result(self->cli, &wait), error);
}

/* Is @value in the sealed store? FALSE also when another one is. @other: (out): that */
static gboolean
is_sealed(const Seal *self, const char *name, EbSecret *value, gboolean *other, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(EbCredential) there = eb_cli_creds_lookup(self->cli, self->sealed, name, &local);

    *other = there != NULL && !eb_secret_equal(there->secret, value);
    if (there == NULL && !g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND))
        g_propagate_error(error, g_steal_pointer(&local));
    return there != NULL && !*other;
}

static gboolean
seal_one(Seal *self, const EbExtension *from, const char *name, GError **error)
{
    g_autoptr(EbCredential) plain = eb_cli_creds_lookup(self->cli, from, name, error);
    GError *local = NULL;
    gboolean other = FALSE;

    if (plain == NULL)
        return FALSE;
    gboolean there = is_sealed(self, name, plain->secret, &other, &local);
    if (local != NULL) {
        g_propagate_error(error, local);
        return FALSE;
    }
    if (other && !self->replace) {
        eb_set_error(
            error, EB_ERROR_EXISTS, "creds.differs",
            "%s has another value in %s than in %s (errand-box creds seal --replace takes the latter; errand-box "
            "creds remove %s --store %s drops it)",
            name, self->sealed->name, plain->source, name, from->name);
        return FALSE;
    }
    if (!there && !eb_cli_creds_put(self->cli, self->sealed, name, plain, error))
        return FALSE;
    /* Read back from the disk, before the only other copy goes. */
    if (!is_sealed(self, name, plain->secret, &other, error)) {
        if (error != NULL && *error == NULL)
            eb_set_error(error, EB_ERROR_INTEGRITY, "creds.seal", "%s does not come back from %s; %s is left as it is",
                         name, self->sealed->name, plain->source);
        return FALSE;
    }
    if (!eb_cli_creds_remove(self->cli, from, name, error))
        return FALSE;
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "name", name);
    json_object_set_string_member(object, "from", plain->source);
    json_object_set_string_member(object, "to", self->sealed->name);
    json_array_add_object_element(self->moved, object);
    self->n_moved++;
    if (!eb_cli_get_json(self->cli))
        eb_cli_print(self->cli, "%s: moved from %s into %s\n", name, plain->source, self->sealed->name);
    return TRUE;
}

/* Every name of one plain store; goes on behind one that cannot be moved. */
static int
seal_store(Seal *self, const EbExtension *from)
{
    g_autofree char *where = eb_credential_store_describe(EB_CREDENTIAL_STORE(from->object));
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = eb_cli_creds_names(self->cli, from, &error);
    int code = EB_EXIT_OK;

    if (names == NULL)
        return eb_cli_fail(self->cli, where, error);
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(GError) local = NULL;
        if (!seal_one(self, from, *name, &local))
            code = eb_cli_fail(self->cli, "creds seal", local);
    }
    return code;
}

static gboolean
begin(Seal *self, GPtrArray *stores, GError **error)
{
    const char *old_key = eb_cli_args_value(eb_cli_get_args(self->cli), "old-key");
    g_autoptr(EbSecret) previous = NULL;

    for (guint i = 0; i < stores->len && self->sealed == NULL; i++)
        if (strcmp(((const EbExtension *)stores->pdata[i])->name, SEALED) == 0)
            self->sealed = stores->pdata[i];
    if (self->sealed == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "creds.store", "no store \"%s\" is loaded (see [credentials] order)",
                     SEALED);
        return FALSE;
    }
    if (old_key != NULL) {
        previous = eb_cli_value_read("previous key", old_key, error);
        if (previous == NULL)
            return FALSE;
    }
    if (!rekey(self, previous, error))
        return FALSE;
    if (old_key != NULL && !eb_cli_get_json(self->cli))
        eb_cli_print(self->cli, "what is sealed opens with the present key alone\n");
    return TRUE;
}

int
eb_cli_creds_seal(EbCli *cli, GPtrArray *stores)
{
    Seal self = {.cli = cli, .replace = eb_cli_args_flag(eb_cli_get_args(cli), "replace")};
    g_autoptr(GError) error = NULL;
    gboolean behind = FALSE;
    int code = EB_EXIT_OK;

    if (!begin(&self, stores, &error))
        return eb_cli_fail(cli, "creds seal", error);
    self.moved = json_array_new();
    /* What stands before it in the order is used first, and is left where it is. */
    for (guint i = 0; i < stores->len; i++) {
        if (behind) {
            int one = seal_store(&self, stores->pdata[i]);
            code = code == EB_EXIT_OK ? one : code;
        }
        behind = behind || stores->pdata[i] == self.sealed;
    }
    eb_cli_creds_print_json(cli, "moved", self.moved);
    if (eb_cli_get_json(cli))
        return code;
    if (self.n_moved > 0)
        eb_cli_print(cli,
                     "The plain values may still be in free blocks of the disk, in snapshots and in backups of it: "
                     "where that matters, replace them where they were issued.\n");
    else if (code == EB_EXIT_OK)
        eb_cli_print(cli, "nothing is left in plain files\n");
    return code;
}
