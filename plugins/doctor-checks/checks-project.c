/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "check-context.h"
#include "doctor-checks.h"

static JsonObject *
get_project(EbHost *host, EbConfigSection *settings, char **name, EbCheckResult **skip)
{
    g_autofree char *request = NULL;
    g_autofree char *missing = NULL;

    *name = dc_project(host, settings);
    if (*name == NULL) {
        *skip = eb_check_result_new(EB_CHECK_SKIPPED, "the account does not exist, so its project cannot be named");
        return NULL;
    }
    request = dc_request("/1.0/projects/%s", *name, NULL);
    missing = g_strdup_printf("there is no project %s", *name);
    return dc_get(host, settings, request, missing, skip);
}

static EbCheckResult *
check_project(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autofree char *name = NULL;
    g_autoptr(JsonObject) project = get_project(host, settings, &name, &skip);

    return project != NULL ? eb_check_result_new(EB_CHECK_OK, "project %s", name) : skip;
}

/* Another check says that the project is missing: once is enough. */
static JsonObject *
get_project_config(EbHost *host, EbConfigSection *settings, char **name, EbCheckResult **skip)
{
    g_autoptr(JsonObject) project = get_project(host, settings, name, skip);
    JsonObject *config = eb_json_get_object(project, "config");

    if (config != NULL)
        return json_object_ref(config);
    if (project != NULL)
        *skip = eb_check_result_new(EB_CHECK_SKIPPED, "project %s shows no configuration", *name);
    else if ((*skip)->status == EB_CHECK_FAIL)
        (*skip)->status = EB_CHECK_SKIPPED;
    return NULL;
}

/* A key that is not set has Incus's default. */
static const char *
value_of(JsonObject *config, const char *key, const char *fallback)
{
    const char *value = eb_json_get_string(config, key);

    return value != NULL ? value : fallback;
}

static EbCheckResult *
check_restricted(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const struct {
        const char *key, *fallback, *bad;
    } RULES[] = {
        {"restricted", "false", "false"},
        {"restricted.containers.privilege", "unprivileged", "allow"},
        {"restricted.containers.lowlevel", "block", "allow"},
        {"restricted.containers.interception", "block", "allow"},
        {"restricted.devices.nic", "managed", "allow"},
        {"restricted.devices.nic", "managed", "managed"},
    };
    EbCheckResult *skip = NULL;
    g_autofree char *name = NULL;
    g_autoptr(JsonObject) config = get_project_config(host, settings, &name, &skip);

    if (config == NULL)
        return skip;
    for (guint i = 0; i < G_N_ELEMENTS(RULES); i++) {
        const char *value = value_of(config, RULES[i].key, RULES[i].fallback);
        if (strcmp(value, RULES[i].bad) == 0)
            return eb_check_result_new(EB_CHECK_FAIL, "%s of project %s is %s", RULES[i].key, name, value);
    }
    return eb_check_result_new(EB_CHECK_OK, "no network device, no privilege, no raw settings");
}

/* Disks may come from the sessions' directories and the projects alone, never from where the credentials are. */
static EbCheckResult *
check_disk_paths(EbConfigSection *settings, JsonObject *config, const char *name)
{
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    g_autofree char *home = g_build_filename(state_dir, "home", NULL);
    g_autofree char *default_projects = g_build_filename(home, "projects", NULL);
    g_autofree char *project_root = dc_setting(settings, "project_root", default_projects);
    g_autofree char *sessions = g_build_filename(state_dir, "sessions", NULL);
    g_autofree char *tries = g_build_filename(state_dir, "try", NULL);
    const char *text = value_of(config, "restricted.devices.disk.paths", "");
    g_auto(GStrv) paths = g_strsplit(text, ",", -1);

    if (strcmp(value_of(config, "restricted.devices.disk", "managed"), "allow") != 0)
        return NULL;
    /* A service of `maint selftest`: the paths are those of the installation it is part of, whose own doctor judges them. */
    if (strstr(state_dir, "/try/selftest-") != NULL)
        return NULL;
    if (*text == '\0')
        return eb_check_result_new(EB_CHECK_FAIL, "project %s lets every path of the host into a guest", name);
    for (guint i = 0; paths[i] != NULL; i++)
        if (!dc_is_below(paths[i], sessions) && !dc_is_below(paths[i], tries) && !dc_is_below(paths[i], project_root))
            return eb_check_result_new(EB_CHECK_FAIL, "project %s lets %s of the host into a guest", name, paths[i]);
    return NULL;
}

static EbCheckResult *
check_devices(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const char *const KEYS[] = {
        "restricted.devices.proxy",        "restricted.devices.unix-char",  "restricted.devices.unix-block",
        "restricted.devices.unix-hotplug", "restricted.devices.usb",        "restricted.devices.pci",
        "restricted.devices.gpu",          "restricted.devices.infiniband",
    };
    EbCheckResult *skip = NULL, *finding;
    g_autofree char *name = NULL;
    g_autoptr(JsonObject) config = get_project_config(host, settings, &name, &skip);

    if (config == NULL)
        return skip;
    for (guint i = 0; i < G_N_ELEMENTS(KEYS); i++)
        if (strcmp(value_of(config, KEYS[i], "block"), "block") != 0)
            return eb_check_result_new(EB_CHECK_FAIL, "%s of project %s is %s", KEYS[i], name,
                                       value_of(config, KEYS[i], "block"));
    finding = check_disk_paths(settings, config, name);
    return finding != NULL ? finding
                           : eb_check_result_new(EB_CHECK_OK, "disks below the sessions and projects alone, no other "
                                                              "device of the host");
}

static EbCheckResult *
check_profile(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autofree char *name = dc_project(host, settings);
    g_autofree char *request = name != NULL ? dc_request("/1.0/profiles/%s", "default", name) : NULL;
    g_autoptr(JsonObject) profile = NULL;
    JsonObject *devices;
    g_autoptr(GList) members = NULL;

    if (request == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "the account does not exist, so its project cannot be named");
    profile = dc_get(host, settings, request, NULL, &skip);
    if (profile == NULL)
        return skip;
    devices = eb_json_get_object(profile, "devices");
    members = devices != NULL ? json_object_get_members(devices) : NULL;
    for (GList *l = members; l != NULL; l = l->next) {
        const char *type = eb_json_get_string(eb_json_get_object(devices, l->data), "type");
        if (g_strcmp0(type, "disk") != 0)
            return eb_check_result_new(EB_CHECK_FAIL, "the default profile of %s gives guests a device of type %s",
                                       name, type != NULL ? type : "unknown");
    }
    if (eb_json_get_object(devices, "root") == NULL)
        return eb_check_result_new(EB_CHECK_FAIL, "the default profile of %s has no root disk", name);
    return eb_check_result_new(EB_CHECK_OK, "a root disk");
}

/* What one guest must not have; NULL when it is fine. */
static const char *
judge_instance(JsonObject *instance)
{
    JsonObject *config = eb_json_get_object(instance, "expanded_config");
    JsonObject *devices = eb_json_get_object(instance, "expanded_devices");
    g_autoptr(GList) members = devices != NULL ? json_object_get_members(devices) : NULL;

    if (strcmp(value_of(config, "security.privileged", "false"), "true") == 0)
        return "is privileged";
    if (strcmp(value_of(config, "security.syscalls.deny_default", "true"), "false") == 0)
        return "runs without seccomp";
    for (GList *l = members; l != NULL; l = l->next) {
        const char *type = eb_json_get_string(eb_json_get_object(devices, l->data), "type");
        if (g_strcmp0(type, "nic") == 0)
            return "has a network device";
        if (g_strcmp0(type, "disk") != 0 && g_strcmp0(type, "none") != 0)
            return "has a device of the host";
    }
    return NULL;
}

static EbCheckResult *
check_guests(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autoptr(JsonNode) answer = dc_get_guests(host, settings, &skip);
    JsonArray *list = eb_json_get_array(eb_json_node_object(answer), "metadata");

    if (list == NULL)
        return skip;
    for (guint i = 0; i < json_array_get_length(list); i++) {
        JsonObject *instance = eb_json_array_object(list, i);
        const char *fault = judge_instance(instance);
        if (fault != NULL)
            return eb_check_result_new(EB_CHECK_FAIL, "guest %s %s", value_of(instance, "name", "?"), fault);
    }
    return eb_check_result_new(EB_CHECK_OK, "%u guests", json_array_get_length(list));
}

/* Metadata of the image that guests are made from. */
static JsonObject *
get_image(EbHost *host, EbConfigSection *settings, char **alias, EbCheckResult **skip)
{
    g_autofree char *name = dc_project(host, settings);
    g_autofree char *request = NULL;
    g_autofree char *missing = NULL;

    *alias = dc_setting(settings, "backend.image", "errand-box/guest");
    if (name == NULL) {
        *skip = eb_check_result_new(EB_CHECK_SKIPPED, "the account does not exist, so its project cannot be named");
        return NULL;
    }
    request = dc_request("/1.0/images/aliases/%s", *alias, name);
    missing = g_strdup_printf("project %s has no image %s", name, *alias);
    return dc_get(host, settings, request, missing, skip);
}

static EbCheckResult *
check_image(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autofree char *alias = NULL;
    g_autoptr(JsonObject) image = get_image(host, settings, &alias, &skip);

    return image != NULL ? eb_check_result_new(EB_CHECK_OK, "image %s", alias) : skip;
}

static EbCheckResult *
check_image_state(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autofree char *alias = NULL;
    g_autofree char *project = dc_project(host, settings);
    g_autofree char *recipe = dc_setting(settings, "image.recipe", NULL);
    g_autoptr(JsonObject) entry = get_image(host, settings, &alias, &skip);
    g_autofree char *request = NULL;
    g_autoptr(JsonObject) image = NULL;
    g_autofree char *agents = dc_setting(settings, "image.agents", NULL);
    const char *target, *built, *has;

    if (entry == NULL) {
        if (skip->status == EB_CHECK_FAIL)
            skip->status = EB_CHECK_SKIPPED; /* the check before says so */
        return skip;
    }
    target = eb_json_get_string(entry, "target");
    request = dc_request("/1.0/images/%s", target != NULL ? target : "", project);
    image = dc_get(host, settings, request, NULL, &skip);
    if (image == NULL)
        return skip;
    built = eb_json_get_string(eb_json_get_object(image, "properties"), "errand.recipe");
    if (built == NULL)
        return eb_check_result_new(EB_CHECK_DEGRADED, "image %s was not made by this program's recipe", alias);
    has = eb_json_get_string(eb_json_get_object(image, "properties"), "errand.agents");
    /* An image with agents of the operator's choice has another recipe and is not old for that. */
    if (agents != NULL && has != NULL && strcmp(agents, has) != 0)
        return eb_check_result_new(EB_CHECK_OK, "made for %s", has);
    if (recipe != NULL && strcmp(recipe, built) != 0)
        return eb_check_result_new(EB_CHECK_DEGRADED, "image %s was made by another recipe (%.12s, now %.12s)", alias,
                                   built, recipe);
    return eb_check_result_new(EB_CHECK_OK, "made by recipe %.12s", built);
}

const DcRow DC_PROJECT_CHECKS[] = {
    DC_ROW(E_23, check_project),     DC_ROW(E_24, check_restricted),
    DC_ROW(E_61, check_devices),     DC_ROW(E_65, check_profile),
    DC_ROW(E_62, check_guests),      DC_ROW(E_25, check_image),
    DC_ROW(E_26, check_image_state), {NULL, NULL, NULL},
};
