/* SPDX-License-Identifier: MIT */
#include "tests/integration/provision/setup-world.h"

#include <dirent.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-provision-client.h"
#include "tests/lib/eb-test.h"

const char *
setup_world_skip_reason(void)
{
    if (geteuid() != 0 || access("/usr/libexec/incus/incusd", X_OK) < 0)
        return "needs root and incusd";
    return NULL;
}

SetupWorld *
setup_world_new(const char *account, const char *name, const char *dir)
{
    SetupWorld *self = g_new0(SetupWorld, 1);
    g_autofree char *text = NULL;

    self->dir = dir != NULL ? g_strdup(dir) : eb_test_temp_dir(name);
    /* The account must get through to its own directories. */
    g_chmod(self->dir, 0755);
    self->state_dir = g_build_filename(self->dir, "s", NULL);
    self->config_file = g_build_filename(self->dir, "errand-box.toml", NULL);
    self->creds_file = g_build_filename(self->dir, "creds.env", NULL);
    self->env_file = g_build_filename(self->dir, "errand-box.env", NULL);
    self->settings_file = g_build_filename(self->dir, "etc", "conf.d", "written.toml", NULL);
    self->incus_dir = g_build_filename(self->dir, "i", NULL);
    self->ledger_dir = g_strconcat(self->incus_dir, "-setup", NULL);
    g_setenv("INCUS_DIR", self->incus_dir, TRUE);
    g_setenv("ERRAND_BOX_POOL_SIZE", "2GiB", TRUE);
    if (dir != NULL)
        return self;
    text = g_strdup_printf("[service]\naccount = \"%s\"\nstate_dir = \"%s\"\nproject_root = \"%s/home/projects\"\n",
                           account, self->state_dir, self->state_dir);
    eb_test_write_file(self->config_file, text);
    eb_test_write_file(self->creds_file, "ERRAND_PROVIDER_CREDENTIAL=sk-secret-value\n");
    eb_test_write_file(self->env_file, "ERRAND_PROVIDER=anthropic\nERRAND_MODEL=test\n");
    g_chmod(self->creds_file, 0600);
    return self;
}

void
setup_world_free(SetupWorld *self)
{
    g_free(self->dir);
    g_free(self->state_dir);
    g_free(self->config_file);
    g_free(self->creds_file);
    g_free(self->env_file);
    g_free(self->settings_file);
    g_free(self->incus_dir);
    g_free(self->ledger_dir);
    g_free(self);
}

EbSetupOptions
setup_world_options(SetupWorld *self, EbConfig **config)
{
    g_autoptr(GError) error = NULL;
    EbSetupOptions options = {
        .creds_file = self->creds_file, .env_file = self->env_file, .config_file = self->settings_file};

    *config = eb_config_load(self->config_file, g_getenv("EB_DATA_DIR"), &error);
    g_assert_no_error(error);
    options.config = *config;
    return options;
}

const EbSetupRow *
setup_world_find_row(EbSetup *setup, const char *id)
{
    GPtrArray *rows = eb_setup_get_rows(setup);

    for (guint i = 0; i < rows->len; i++)
        if (strcmp(((EbSetupRow *)rows->pdata[i])->id, id) == 0)
            return rows->pdata[i];
    return NULL;
}

static int
by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Path, mode and owner of all below @path; what is below a directory called @skip is left out. */
static void
list_tree(const char *path, const char *skip, GPtrArray *lines)
{
    struct stat info;
    g_autoptr(GDir) dir = NULL;
    const char *name;

    if (lstat(path, &info) < 0)
        return;
    g_ptr_array_add(lines,
                    g_strdup_printf("%s %06o %u:%u", path, info.st_mode, (guint)info.st_uid, (guint)info.st_gid));
    if (!S_ISDIR(info.st_mode) || g_strcmp0(path, skip) == 0)
        return;
    dir = g_dir_open(path, 0, NULL);
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *below = g_build_filename(path, name, NULL);
        list_tree(below, skip, lines);
    }
}

static void
add_file(const char *path, GPtrArray *lines)
{
    g_autofree char *text = NULL;

    if (g_file_get_contents(path, &text, NULL, NULL))
        g_ptr_array_add(lines, g_strdup_printf("%s: %s", path, text));
}

static char *
join_lines(GPtrArray *lines)
{
    GString *text = g_string_new(NULL);

    g_ptr_array_sort(lines, by_text);
    for (guint i = 0; i < lines->len; i++)
        g_string_append_printf(text, "%s\n", (char *)lines->pdata[i]);
    return g_string_free(text, FALSE);
}

static const char *const FILES[] = {"/etc/passwd",
                                    "/etc/group",
                                    "/etc/subuid",
                                    "/etc/subgid",
                                    "/proc/sys/fs/inotify/max_user_instances",
                                    "/proc/sys/fs/inotify/max_user_watches",
                                    "/proc/sys/kernel/keys/maxkeys",
                                    "/proc/sys/kernel/keys/maxbytes",
                                    "/proc/sys/vm/max_map_count",
                                    "/proc/sys/fs/aio-max-nr",
                                    "/proc/sys/fs/protected_symlinks",
                                    "/proc/sys/fs/protected_hardlinks",
                                    "/proc/sys/kernel/dmesg_restrict"};

char *
setup_world_list_host(SetupWorld *self)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *mounts = NULL;

    list_tree(self->dir, NULL, lines);
    list_tree("/etc/sysctl.d", NULL, lines);
    list_tree("/etc/errand-box", NULL, lines);
    for (guint i = 0; i < G_N_ELEMENTS(FILES); i++)
        add_file(FILES[i], lines);
    if (g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL) && strstr(mounts, self->incus_dir) != NULL)
        g_ptr_array_add(lines, g_strdup("mounts are left"));
    return join_lines(lines);
}

/* --- what setup made --- */

static void
add_answer(EbProvisionClient *client, const char *path, const char *const *members, GPtrArray *lines)
{
    g_autoptr(JsonNode) node = eb_provision_client_call(client, "GET", path, NULL, 30000, NULL);
    JsonArray *list = node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonObject *object = eb_json_array_object(list, i);
        /* Interfaces of the host come and go with other tests. */
        if (g_str_has_prefix(path, "/1.0/networks") && !eb_json_get_bool(object, "managed", FALSE))
            continue;
        for (guint j = 0; members[j] != NULL; j++) {
            JsonNode *member = eb_json_get_node(object, members[j]);
            g_autoptr(GList) keys = NULL;
            if (member == NULL || !JSON_NODE_HOLDS_OBJECT(member)) {
                g_autofree char *value = member != NULL ? eb_json_write(member, NULL) : NULL;
                g_ptr_array_add(lines, g_strdup_printf("%s %u %s %s", path, i, members[j], value));
                continue;
            }
            keys = json_object_get_members(json_node_get_object(member));
            for (GList *key = keys; key != NULL; key = key->next) {
                g_autofree char *value = eb_json_write(eb_json_get_node(json_node_get_object(member), key->data), NULL);
                g_ptr_array_add(lines,
                                g_strdup_printf("%s %u %s %s = %s", path, i, members[j], (char *)key->data, value));
            }
        }
    }
}

/* Kernel settings are the machine's: what was there before depends on who else was at work on it. */
static void
add_ledger(const char *path, GPtrArray *lines)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) entries = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return;
    entries = g_strsplit(text, "\n", -1);
    for (guint i = 0; entries[i] != NULL; i++)
        if (strstr(entries[i], "\"step\":\"kernel\"") == NULL)
            g_ptr_array_add(lines, g_strconcat("ledger ", entries[i], NULL));
}

char *
setup_world_describe(SetupWorld *self)
{
    static const char *const NAMED[] = {"name", "status", "driver", "type", "config", "devices", NULL};
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *socket = g_build_filename(self->incus_dir, "unix.socket", NULL);
    g_autofree char *ledger = g_build_filename(self->ledger_dir, "ledger.json", NULL);
    g_autoptr(EbProvisionClient) client = eb_provision_client_new(socket);
    g_autofree char *text = NULL;

    list_tree(self->dir, self->incus_dir, lines);
    for (guint i = 0; i < G_N_ELEMENTS(FILES); i++)
        add_file(FILES[i], lines);
    add_ledger(ledger, lines);
    add_file(self->settings_file, lines);
    add_answer(client, "/1.0/storage-pools?recursion=1", NAMED, lines);
    add_answer(client, "/1.0/projects?recursion=1", NAMED, lines);
    add_answer(client, "/1.0/profiles?recursion=1&all-projects=true", NAMED, lines);
    add_answer(client, "/1.0/networks?recursion=1", NAMED, lines);
    text = join_lines(lines);
    g_auto(GStrv) parts = g_strsplit(text, self->dir, -1);
    return g_strjoinv("WORLD", parts);
}
