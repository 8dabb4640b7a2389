/* SPDX-License-Identifier: MIT */
#include <grp.h>
#include <string.h>

#include "core/base/eb-tree-remove.h"
#include "core/provision/eb-setup-private.h"

/* Taking back what setup made inside the container daemon. Others may have come to use it. */

#define CALL_MS 30000
/* Stopping a guest takes as long as its grace. */
#define GUEST_MS 120000
/* Labels of the container backend: what carries them is a guest of a session. */
#define LABEL "user.errand."

/* TRUE with *@found NULL: it does not exist, or a plan cannot look. */
static gboolean
look_up(EbSetup *self, const char *path, JsonNode **found, GError **error)
{
    g_autoptr(GError) failure = NULL;

    *found = eb_provision_client_call(self->client, "GET", path, NULL, CALL_MS, &failure);
    if (*found != NULL || g_error_matches(failure, EB_ERROR, EB_ERROR_NOT_FOUND) || self->options.plan)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
}

static gboolean
call(EbSetup *self, const char *method, const char *path, JsonNode *body, guint deadline_ms, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(JsonNode) answer = eb_provision_client_call(self->client, method, path, body, deadline_ms, &failure);

    /* Gone already: an interrupted run did it. */
    if (answer != NULL || (strcmp(method, "DELETE") == 0 && g_error_matches(failure, EB_ERROR, EB_ERROR_NOT_FOUND)))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
}

static const char *
verb(EbSetup *self)
{
    return self->options.plan ? "remove" : "removed";
}

static gboolean
is_ours(EbSetup *self, const char *project)
{
    return eb_setup_ledger_find(self->ledger, "project", project) != NULL;
}

/* A URL of the API belongs to a project that goes as well: a plan is made while that is still there. */
static gboolean
goes_too(EbSetup *self, const char *url)
{
    const char *project = strstr(url, "project=");

    if (!self->options.plan)
        return FALSE;
    if (project != NULL) {
        g_autofree char *name = g_strndup(project + strlen("project="), strcspn(project + strlen("project="), "&"));
        return is_ours(self, name);
    }
    return FALSE;
}

/* (transfer full) (nullable): who uses @object, the first three */
static char *
describe_users(EbSetup *self, JsonNode *object)
{
    JsonArray *users = eb_json_get_array(eb_json_node_object(object), "used_by");
    g_autoptr(GString) text = g_string_new(NULL);
    guint n = 0;

    for (guint i = 0; users != NULL && i < json_array_get_length(users); i++) {
        const char *url = eb_json_array_string(users, i);
        if (url == NULL || goes_too(self, url))
            continue;
        if (n++ < 3)
            g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", url);
    }
    if (n > 3)
        g_string_append_printf(text, " and %u more", n - 3);
    return n > 0 ? eb_log_escape(text->str, -1, 300) : NULL;
}

static EbUndone
undo_unused(EbSetup *self, const EbLedgerEntry *entry, const char *path, EbFindings *findings, GError **error)
{
    g_autoptr(JsonNode) object = NULL;
    g_autofree char *users = NULL;

    if (!look_up(self, path, &object, error))
        return EB_UNDO_FAILED;
    if (object == NULL && !self->options.plan)
        return EB_UNDO_DONE;
    users = describe_users(self, object);
    if (users != NULL) {
        eb_findings_note(findings, "left the %s %s: used by %s", entry->kind, entry->name, users);
        return EB_UNDO_KEPT;
    }
    eb_findings_change(findings, "%s the %s %s", verb(self), entry->kind, entry->name);
    return self->options.plan || call(self, "DELETE", path, NULL, CALL_MS, error) ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

EbUndone
eb_setup_undo_pool(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *path = eb_provision_path("/1.0/storage-pools/%s", entry->name);

    return undo_unused(self, entry, path, findings, error);
}

EbUndone
eb_setup_undo_network(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *path = eb_provision_path("/1.0/networks/%s", entry->name);

    return undo_unused(self, entry, path, findings, error);
}

/* --- project --- */

static gboolean
has_label(JsonObject *instance)
{
    JsonObject *config = eb_json_get_object(instance, "config");
    g_autoptr(GList) keys = config != NULL ? json_object_get_members(config) : NULL;

    for (GList *key = keys; key != NULL; key = key->next)
        if (g_str_has_prefix(key->data, LABEL))
            return TRUE;
    return FALSE;
}

static gboolean
is_named_default(JsonObject *object)
{
    return g_strcmp0(eb_json_get_string(object, "name"), "default") == 0;
}

/* (transfer full) (nullable): what is in the project that no guest of a session is */
static char *
find_foreign(EbSetup *self, const char *project, JsonArray *instances, GError **error)
{
    g_autofree char *profiles_path = eb_provision_path("/1.0/profiles?recursion=1&project=%s", project);
    g_autofree char *volumes_path =
        eb_provision_path("/1.0/storage-pools/%s/volumes/custom?recursion=1&project=%s", self->pool, project);
    g_autoptr(JsonNode) profiles = NULL;
    g_autoptr(JsonNode) volumes = NULL;
    JsonArray *list;

    for (guint i = 0; instances != NULL && i < json_array_get_length(instances); i++) {
        JsonObject *instance = eb_json_array_object(instances, i);
        if (!has_label(instance))
            return g_strdup_printf("instance %s is in it", eb_json_get_string(instance, "name"));
    }
    if (!look_up(self, profiles_path, &profiles, error) || !look_up(self, volumes_path, &volumes, error))
        return NULL;
    list = profiles != NULL && JSON_NODE_HOLDS_ARRAY(profiles) ? json_node_get_array(profiles) : NULL;
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++)
        if (!is_named_default(eb_json_array_object(list, i)))
            return g_strdup_printf("profile %s is in it", eb_json_get_string(eb_json_array_object(list, i), "name"));
    list = volumes != NULL && JSON_NODE_HOLDS_ARRAY(volumes) ? json_node_get_array(volumes) : NULL;
    if (list != NULL && json_array_get_length(list) > 0 && !self->options.remove_data)
        return g_strdup_printf(
            "%u volumes of sessions are in it (to remove them too: errand-box setup --undo --yes-data)",
            json_array_get_length(list));
    return NULL;
}

static gboolean
remove_instance(EbSetup *self, const char *project, JsonObject *instance, GError **error)
{
    const char *name = eb_json_get_string(instance, "name");
    g_autofree char *path = eb_provision_path("/1.0/instances/%s?project=%s", name, project);
    g_autofree char *state = eb_provision_path("/1.0/instances/%s/state?project=%s", name, project);

    if (g_strcmp0(eb_json_get_string(instance, "status"), "Stopped") != 0) {
        static const char STOP[] = "{\"action\":\"stop\",\"force\":true}";
        g_autoptr(JsonNode) body = eb_json_parse(STOP, strlen(STOP), NULL, NULL);
        g_autoptr(JsonNode) answer =
            eb_provision_client_call(self->client, "PUT", state, g_steal_pointer(&body), GUEST_MS, NULL);
        /* One that stopped meanwhile, or is ephemeral and gone: the next call tells. */
    }
    return call(self, "DELETE", path, NULL, GUEST_MS, error);
}

/* Removes every object that the list at @path names, by its "name" or "fingerprint" below @base. */
static gboolean
remove_listed(EbSetup *self, const char *path, const char *base, const char *key, const char *project, GError **error)
{
    g_autoptr(JsonNode) node = NULL;
    JsonArray *list;

    if (!look_up(self, path, &node, error))
        return FALSE;
    list = node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        const char *name = eb_json_get_string(eb_json_array_object(list, i), key);
        g_autofree char *tail = eb_provision_path("%s?project=%s", name != NULL ? name : "", project);
        g_autofree char *one = g_strconcat(base, "/", tail, NULL);
        if (name != NULL && !call(self, "DELETE", one, NULL, GUEST_MS, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
empty_project(EbSetup *self, const char *project, JsonArray *instances, GError **error)
{
    g_autofree char *images = eb_provision_path("/1.0/images?recursion=1&project=%s", project);
    g_autofree char *volumes =
        eb_provision_path("/1.0/storage-pools/%s/volumes/custom?recursion=1&project=%s", self->pool, project);
    g_autofree char *volume_base = eb_provision_path("/1.0/storage-pools/%s/volumes/custom", self->pool);

    for (guint i = 0; instances != NULL && i < json_array_get_length(instances); i++)
        if (!remove_instance(self, project, eb_json_array_object(instances, i), error))
            return FALSE;
    return remove_listed(self, images, "/1.0/images", "fingerprint", project, error) &&
           remove_listed(self, volumes, volume_base, "name", project, error);
}

/* The account's way in goes with the project: what incus-user keeps of it would be refused by a later one. */
static gboolean
forget_user(EbSetup *self, const char *project, GError **error)
{
    guint64 uid = 0;

    if (!g_str_has_prefix(project, "user-") ||
        !g_ascii_string_to_unsigned(project + strlen("user-"), 10, 1, G_MAXUINT32 - 1, &uid, NULL))
        return TRUE;
    return eb_setup_forget_incus_user(self, (guint)uid, error);
}

static EbUndone
undo_own_project(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *path = eb_provision_path("/1.0/projects/%s", entry->name);
    g_autofree char *list = eb_provision_path("/1.0/instances?recursion=1&project=%s", entry->name);
    g_autoptr(JsonNode) project = NULL;
    g_autoptr(JsonNode) node = NULL;
    g_autoptr(GError) failure = NULL;
    g_autofree char *foreign = NULL;
    JsonArray *instances;

    if (!look_up(self, path, &project, error))
        return EB_UNDO_FAILED;
    if (project == NULL) {
        if (self->options.plan)
            eb_findings_change(findings, "remove the project %s with what is in it", entry->name);
        return EB_UNDO_DONE;
    }
    if (!look_up(self, list, &node, error))
        return EB_UNDO_FAILED;
    instances = node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    foreign = find_foreign(self, entry->name, instances, &failure);
    if (failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return EB_UNDO_FAILED;
    }
    if (foreign != NULL) {
        eb_findings_note(findings, "left the project %s: %s", entry->name, foreign);
        return EB_UNDO_KEPT;
    }
    eb_findings_change(findings, "%s the project %s with its images and %u guests", verb(self), entry->name,
                       instances != NULL ? json_array_get_length(instances) : 0);
    if (self->options.plan)
        return EB_UNDO_DONE;
    return empty_project(self, entry->name, instances, error) && forget_user(self, entry->name, error) &&
                   call(self, "DELETE", path, NULL, CALL_MS, error)
               ? EB_UNDO_DONE
               : EB_UNDO_FAILED;
}

/* The project was there: its keys get the values they had. */
static EbUndone
undo_project_keys(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *path = eb_provision_path("/1.0/projects/%s", entry->name);
    g_autoptr(JsonNode) before = eb_json_parse(entry->before, strlen(entry->before), &EB_JSON_LIMITS_SMALL, error);
    g_autoptr(JsonNode) project = NULL;
    g_autoptr(JsonNode) body = NULL;
    JsonObject *old = eb_json_node_object(before);
    JsonObject *config, *request;
    g_autoptr(GList) keys = NULL;

    if (old == NULL || !look_up(self, path, &project, error))
        return EB_UNDO_FAILED;
    if (project == NULL)
        return EB_UNDO_DONE;
    eb_findings_change(findings, "give the project %s the settings it had", entry->name);
    if (self->options.plan)
        return EB_UNDO_DONE;
    config = json_object_ref(eb_json_get_object(eb_json_node_object(project), "config"));
    keys = json_object_get_members(old);
    for (GList *key = keys; key != NULL; key = key->next) {
        const char *value = eb_json_get_string(old, key->data);
        if (*value != '\0')
            json_object_set_string_member(config, key->data, value);
        else if (json_object_has_member(config, key->data))
            json_object_remove_member(config, key->data);
    }
    request = json_object_new();
    json_object_set_object_member(request, "config", config);
    body = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(body, request);
    return call(self, "PUT", path, g_steal_pointer(&body), CALL_MS, error) ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

EbUndone
eb_setup_undo_project(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    return strcmp(entry->kind, "project") == 0 ? undo_own_project(self, entry, findings, error)
                                               : undo_project_keys(self, entry, findings, error);
}

EbUndone
eb_setup_undo_profile(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *path = eb_provision_path("/1.0/profiles/default?project=%s", entry->name);
    g_autoptr(JsonNode) profile = NULL;
    g_autoptr(JsonNode) before = NULL;

    if (!look_up(self, path, &profile, error))
        return EB_UNDO_FAILED;
    if (profile == NULL || entry->before == NULL)
        return EB_UNDO_DONE;
    eb_findings_change(findings, "give the default profile of %s the devices it had", entry->name);
    if (self->options.plan)
        return EB_UNDO_DONE;
    before = eb_json_parse(entry->before, strlen(entry->before), &EB_JSON_LIMITS_SMALL, error);
    return before != NULL && call(self, "PUT", path, g_steal_pointer(&before), CALL_MS, error) ? EB_UNDO_DONE
                                                                                               : EB_UNDO_FAILED;
}

/* --- image --- */

EbUndone
eb_setup_undo_image(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    const char *project = entry->made != NULL ? entry->made : "default";
    g_autofree char *path = eb_provision_path("/1.0/images/aliases/%s?project=%s", entry->name, project);
    g_autoptr(JsonNode) alias = NULL;
    g_autofree char *image = NULL;
    const char *target;

    if (!look_up(self, path, &alias, error))
        return EB_UNDO_FAILED;
    target = eb_json_get_string(eb_json_node_object(alias), "target");
    if (target == NULL)
        return EB_UNDO_DONE;
    eb_findings_change(findings, "%s the guest image %s", verb(self), entry->name);
    image = eb_provision_path("/1.0/images/%s?project=%s", target, project);
    return self->options.plan || call(self, "DELETE", image, NULL, GUEST_MS, error) ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

/* --- others --- */

char *
eb_setup_find_running_guest(EbSetup *self)
{
    const char *project = eb_setup_get_project(self);
    g_autofree char *path = eb_provision_path("/1.0/instances?recursion=1&project=%s", project != NULL ? project : "-");
    g_autoptr(JsonNode) node = eb_provision_client_call(self->client, "GET", path, NULL, CALL_MS, NULL);
    JsonArray *list = node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonObject *instance = eb_json_array_object(list, i);
        if (has_label(instance) && g_strcmp0(eb_json_get_string(instance, "status"), "Stopped") != 0)
            return g_strdup(eb_json_get_string(instance, "name"));
    }
    return NULL;
}

const char *
eb_setup_find_other_member(EbSetup *self, const char *group_name)
{
    const struct group *group = getgrnam(group_name);

    for (guint i = 0; group != NULL && group->gr_mem[i] != NULL; i++)
        if (strcmp(group->gr_mem[i], self->account) != 0)
            return group->gr_mem[i];
    return NULL;
}

char *
eb_setup_find_others(EbSetup *self)
{
    static const struct {
        const char *path;
        const char *what;
        const char *ours; /* (nullable): kind in the ledger */
        gboolean has_default;
    } LISTS[] = {
        {"/1.0/storage-pools", "storage pool", "pool", FALSE},
        {"/1.0/projects", "project", "project", TRUE},
        {"/1.0/networks?recursion=1", "network", "network", FALSE},
        {"/1.0/instances?all-projects=true", "instance", NULL, FALSE},
    };
    const char *const groups[] = {"incus", "incus-admin"};

    for (guint i = 0; !self->private && i < G_N_ELEMENTS(groups); i++)
        if (eb_setup_find_other_member(self, groups[i]) != NULL)
            return g_strdup_printf("%s is in the group %s", eb_setup_find_other_member(self, groups[i]), groups[i]);
    for (guint i = 0; i < G_N_ELEMENTS(LISTS); i++) {
        g_autoptr(JsonNode) node = eb_provision_client_call(self->client, "GET", LISTS[i].path, NULL, CALL_MS, NULL);
        JsonArray *list = node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
        for (guint j = 0; list != NULL && j < json_array_get_length(list); j++) {
            JsonObject *object = eb_json_array_object(list, j);
            const char *url = object != NULL ? eb_json_get_string(object, "name") : eb_json_array_string(list, j);
            g_autofree char *name = g_path_get_basename(url != NULL ? url : "?");
            /* Interfaces of the host are listed with the networks. */
            if (object != NULL && !eb_json_get_bool(object, "managed", FALSE))
                continue;
            if (LISTS[i].has_default && strcmp(name, "default") == 0)
                continue;
            if (self->options.plan &&
                ((LISTS[i].ours != NULL && eb_setup_ledger_find(self->ledger, LISTS[i].ours, name) != NULL) ||
                 goes_too(self, url != NULL ? url : "")))
                continue;
            return g_strdup_printf("%s %s is there", LISTS[i].what, name);
        }
    }
    return NULL;
}
