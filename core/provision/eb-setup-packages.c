/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-apt.h"
#include "core/provision/eb-id-ranges.h"
#include "core/provision/eb-image-build.h"
#include "core/provision/eb-run.h"
#include "core/provision/eb-setup-private.h"

/* The programs that sessions stand on, from the distribution's packages. */

#define BACKPORTS_FILE "/etc/apt/sources.list.d/errand-box-backports.sources"

static const struct {
    const char *program;
    const char *package;
    gboolean for_image; /* making a guest image takes it, running one does not */
} PROGRAMS[] = {
    {"/usr/libexec/incus/incusd", "incus-base", FALSE},
    {"newuidmap", "uidmap", FALSE},
    {"mkfs.btrfs", "btrfs-progs", FALSE},
    {"lxcfs", "lxcfs", FALSE},
    {"tar", "tar", FALSE},
    {"mmdebstrap", "mmdebstrap", TRUE},
    {"npm", "npm", TRUE},
};

/* What the packages' own scripts add to, and do not take away when they are purged. */
static const struct {
    const char *path;
    char delimiter; /* ends the name in a line; 0: the whole line counts */
} SHARED_FILES[] = {{"/etc/passwd", ':'}, {"/etc/group", ':'}, {"/etc/subuid", '\0'}, {"/etc/subgid", '\0'}};

/* The image of today's recipe is in the cache: nothing is built. */
static gboolean
has_built_image(EbSetup *self)
{
    g_autofree char *cache = eb_image_default_cache();
    g_autoptr(EbImageRecipe) recipe = NULL;
    g_autofree char *path = NULL;

    if (self->options.open_backend == NULL || self->options.paths == NULL)
        return TRUE;
    recipe = eb_image_recipe_load(self->options.paths, NULL, NULL);
    path = g_build_filename(cache, recipe != NULL ? recipe->digest : "-", NULL);
    return g_file_test(path, G_FILE_TEST_IS_DIR);
}

/* (transfer full) (array zero-terminated=1): packages whose programs are not here */
static char **
list_missing(EbSetup *self)
{
    GPtrArray *list = g_ptr_array_new();
    gboolean built = has_built_image(self);

    for (guint i = 0; i < G_N_ELEMENTS(PROGRAMS); i++) {
        g_autofree char *path = eb_run_find(PROGRAMS[i].program);
        if (path == NULL && !(PROGRAMS[i].for_image && built))
            g_ptr_array_add(list, g_strdup(PROGRAMS[i].package));
    }
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

static char *
join_list(GPtrArray *list)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < list->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "", (char *)list->pdata[i]);
    return g_string_free(text, FALSE);
}

/* --- looking --- */

static void
describe_plan(EbFindings *findings, const EbAptPlan *plan)
{
    g_autofree char *installs = join_list(plan->installs);
    g_autofree char *upgrades = join_list(plan->upgrades);
    g_autofree char *kernel = eb_apt_plan_kernel(plan);

    if (plan->installs->len > 0)
        eb_findings_change(findings, "install by apt, %u with what they need: %s", plan->installs->len, installs);
    if (plan->upgrades->len > 0)
        eb_findings_note(findings, "apt upgrades for that: %s (--undo leaves these)", upgrades);
    if (kernel != NULL)
        eb_findings_note(findings, "of these belong to the kernel, which setup asks about first: %s", kernel);
}

/* Packages' scripts made something that is not yet written down: an interrupt came between. */
static gboolean
is_unfinished(EbSetup *self)
{
    for (guint i = 0; i < G_N_ELEMENTS(SHARED_FILES); i++) {
        const EbLedgerEntry *entry = eb_setup_ledger_find(self->ledger, "added", SHARED_FILES[i].path);
        if (entry != NULL && entry->made == NULL)
            return TRUE;
    }
    return FALSE;
}

static gboolean
check_packages(EbSetup *self, EbFindings *findings, GError **error)
{
    g_auto(GStrv) missing = list_missing(self);
    g_autofree char *names = g_strjoinv(" ", missing);
    g_autoptr(EbAptPlan) plan = NULL;
    g_autoptr(GError) failure = NULL;

    if (missing[0] == NULL) {
        if (is_unfinished(self))
            eb_findings_change(findings, "write down what the packages added");
        return TRUE;
    }
    if (!eb_apt_is_here()) {
        eb_set_error(error, EB_ERROR_CONFIG, "provision.packages",
                     "this host has no apt, and programs are missing: install what Debian calls %s with the host's own "
                     "package manager, then run setup again",
                     names);
        return FALSE;
    }
    plan = eb_apt_simulate("install", (const char *const *)missing, &failure);
    if (plan != NULL)
        describe_plan(findings, plan);
    else if (g_error_matches(failure, EB_ERROR, EB_ERROR_NOT_FOUND))
        eb_findings_change(findings,
                           "install by apt: %s, once its lists are fetched (and from the release's backports what the "
                           "release lacks)",
                           names);
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    return findings->changes->len > 0 || failure == NULL;
}

/* --- installing --- */

static gboolean
agree_to_kernel(EbSetup *self, const EbAptPlan *plan, GError **error)
{
    g_autofree char *kernel = eb_apt_plan_kernel(plan);
    g_autofree char *question = NULL;

    if (kernel == NULL || self->options.kernel_modules)
        return TRUE;
    question = g_strdup_printf("apt would install packages that change the kernel or build modules for it: %s", kernel);
    if (self->options.confirm != NULL && self->options.confirm(question, self->options.backend_data))
        return TRUE;
    eb_set_error(error, EB_ERROR_DENIED, "provision.kernel-packages",
                 "%s; nothing was installed (setup --yes-kernel-modules allows it)", question);
    return FALSE;
}

static gboolean
add_backports(EbSetup *self, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *text = eb_apt_make_backports(&failure);

    if (text == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "provision.packages",
                     "no suite of this release has incus-base: %s; install Incus by hand, then run setup again",
                     failure->message);
        return FALSE;
    }
    eb_setup_say(self, "this release has no Incus: adding its backports in " BACKPORTS_FILE);
    return eb_setup_place_file(self, &eb_setup_step_packages, BACKPORTS_FILE, text, 0644, 0, error) &&
           eb_apt_update(error);
}

/* Fetches lists and adds a source as needed, until apt can say what it would do. */
static EbAptPlan *
find_plan(EbSetup *self, const char *const *missing, GError **error)
{
    g_autoptr(GError) failure = NULL;
    EbAptPlan *plan = eb_apt_simulate("install", missing, &failure);

    if (plan != NULL || !g_error_matches(failure, EB_ERROR, EB_ERROR_NOT_FOUND)) {
        if (failure != NULL)
            g_propagate_error(error, g_steal_pointer(&failure));
        return plan;
    }
    eb_setup_say(self, "fetching the package lists");
    if (!eb_apt_update(error))
        return NULL;
    if (g_strv_contains(missing, "incus-base") && !eb_apt_knows("incus-base") && !add_backports(self, error))
        return NULL;
    return eb_apt_simulate("install", missing, error);
}

static gboolean
record_shared_files(EbSetup *self, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(SHARED_FILES); i++) {
        g_autofree char *text = NULL;
        g_autofree char *before = NULL;
        if (eb_setup_ledger_find(self->ledger, "added", SHARED_FILES[i].path) != NULL)
            continue;
        g_file_get_contents(SHARED_FILES[i].path, &text, NULL, NULL);
        /* Names alone. */
        before = eb_apt_new_lines("", text != NULL ? text : "", SHARED_FILES[i].delimiter);
        if (!eb_setup_record(self, &eb_setup_step_packages, "added", SHARED_FILES[i].path, before, NULL, error))
            return FALSE;
    }
    return TRUE;
}

/* What a package's script makes and its purge leaves. */
static gboolean
record_left_directories(EbSetup *self, GError **error)
{
    static const char *const PLACES[] = {"/etc/dnsmasq.d"};

    for (guint i = 0; i < G_N_ELEMENTS(PLACES); i++)
        if (!g_file_test(PLACES[i], G_FILE_TEST_EXISTS) &&
            !eb_setup_record(self, &eb_setup_step_packages, "left-directory", PLACES[i], NULL, NULL, error))
            return FALSE;
    return TRUE;
}

static gboolean
record_additions(EbSetup *self, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(SHARED_FILES); i++) {
        const EbLedgerEntry *entry = eb_setup_ledger_find(self->ledger, "added", SHARED_FILES[i].path);
        g_autofree char *text = NULL;
        g_autofree char *added = NULL;
        if (entry == NULL || entry->made != NULL)
            continue;
        g_file_get_contents(SHARED_FILES[i].path, &text, NULL, NULL);
        added = eb_apt_new_lines(entry->before, text != NULL ? text : "", SHARED_FILES[i].delimiter);
        if (!eb_setup_record(self, &eb_setup_step_packages, "added", SHARED_FILES[i].path, entry->before, added, error))
            return FALSE;
    }
    return TRUE;
}

/* All that is new, besides what an earlier run installed. */
static gboolean
record_packages(EbSetup *self, const EbAptPlan *plan, GError **error)
{
    const EbLedgerEntry *entry = eb_setup_ledger_find(self->ledger, "packages", "apt");
    g_autofree char *names = join_list(plan->installs);
    g_autofree char *all = entry != NULL ? g_strconcat(entry->made, " ", names, NULL) : g_strdup(names);

    return plan->installs->len == 0 ||
           eb_setup_record(self, &eb_setup_step_packages, "packages", "apt", NULL, all, error);
}

static gboolean
apply_packages(EbSetup *self, EbFindings *findings, GError **error)
{
    g_auto(GStrv) missing = list_missing(self);
    g_autoptr(EbAptPlan) plan = NULL;
    g_autofree char *names = NULL;
    g_autoptr(GError) failure = NULL;

    if (missing[0] == NULL)
        return record_additions(self, error);
    plan = find_plan(self, (const char *const *)missing, error);
    if (plan == NULL || !agree_to_kernel(self, plan, error))
        return FALSE;
    names = join_list(plan->installs);
    eb_setup_say(self, "installing %u packages: %s", plan->installs->len, names);
    if (!record_left_directories(self, error) || !record_shared_files(self, error) ||
        !record_packages(self, plan, error) || !eb_setup_want_restart(self, error))
        return FALSE;
    if (!eb_apt_act("install", (const char *const *)missing, &failure)) {
        /* Lists that are weeks old name files that the mirror no longer has. */
        if (!g_error_matches(failure, EB_ERROR, EB_ERROR_UNAVAILABLE)) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return FALSE;
        }
        eb_setup_say(self, "fetching newer package lists");
        g_clear_pointer(&plan, eb_apt_plan_free);
        if (!eb_apt_update(error) || (plan = eb_apt_simulate("install", (const char *const *)missing, error)) == NULL ||
            !agree_to_kernel(self, plan, error) || !record_packages(self, plan, error) ||
            !eb_apt_act("install", (const char *const *)missing, error))
            return FALSE;
    }
    g_clear_pointer(&findings->changes, g_ptr_array_unref);
    findings->changes = g_ptr_array_new_with_free_func(g_free);
    describe_plan(findings, plan);
    return record_additions(self, error);
}

/* --- taking back --- */

/* Data of guests that somebody keeps where purging the package would remove it. */
static gboolean
has_guest_data(void)
{
    static const char *const PLACES[] = {"/var/lib/incus/storage-pools", "/var/lib/incus/disks",
                                         "/var/lib/incus/images", "/var/lib/incus/containers",
                                         "/var/lib/incus/virtual-machines"};

    for (guint i = 0; i < G_N_ELEMENTS(PLACES); i++) {
        g_autoptr(GDir) dir = g_dir_open(PLACES[i], 0, NULL);
        if (dir != NULL && g_dir_read_name(dir) != NULL)
            return TRUE;
    }
    return FALSE;
}

/* (transfer full) (nullable): a package outside @set that would go with @names */
static char *
find_dependent(const char *const *names, GHashTable *set, GError **error)
{
    g_autoptr(EbAptPlan) plan = eb_apt_simulate("purge", names, error);

    for (guint i = 0; plan != NULL && i < plan->removes->len; i++)
        if (!g_hash_table_contains(set, plan->removes->pdata[i]))
            return g_strdup(plan->removes->pdata[i]);
    return NULL;
}

/* Takes out of @set what others need, one after the other. */
static gboolean
spare_dependencies(GHashTable *set, EbFindings *findings, GError **error)
{
    g_autoptr(GError) failure = NULL;

    for (;;) {
        g_autofree char **names = (char **)g_hash_table_get_keys_as_array(set, NULL);
        g_autofree char *dependent =
            names[0] != NULL ? find_dependent((const char *const *)names, set, &failure) : NULL;
        guint spared = 0;

        for (guint i = 0; dependent != NULL && names[i] != NULL; i++) {
            const char *one[] = {names[i], NULL};
            g_autofree char *other = find_dependent(one, set, &failure);
            if (other == NULL)
                continue;
            eb_findings_note(findings, "left the package %s: %s needs it", names[i], other);
            g_hash_table_remove(set, one[0]);
            spared++;
        }
        if (failure != NULL) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return FALSE;
        }
        if (dependent == NULL)
            return TRUE;
        if (spared == 0) {
            eb_findings_note(findings, "left the packages: %s needs some of them", dependent);
            g_hash_table_remove_all(set);
        }
    }
}

static EbUndone
undo_apt(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_auto(GStrv) made = g_strsplit(entry->made != NULL ? entry->made : "", " ", -1);
    g_autoptr(GHashTable) installed = eb_apt_list_installed();
    g_autoptr(GHashTable) set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char **names = NULL;
    g_autofree char *text = NULL;
    guint n;

    for (guint i = 0; made[i] != NULL; i++)
        if (*made[i] != '\0' && g_hash_table_contains(installed, made[i]))
            g_hash_table_add(set, g_strdup(made[i]));
    n = g_hash_table_size(set);
    if (n == 0)
        return EB_UNDO_DONE;
    if (g_hash_table_contains(set, "incus-base") && !self->options.plan &&
        (eb_setup_ledger_find(self->ledger, "daemon", "incusd") != NULL || has_guest_data())) {
        eb_findings_note(findings, "left the package incus-base: something of others is in /var/lib/incus");
        g_hash_table_remove(set, "incus-base");
    }
    if (!spare_dependencies(set, findings, error))
        return EB_UNDO_FAILED;
    names = (char **)g_hash_table_get_keys_as_array(set, NULL);
    text = g_strjoinv(" ", names);
    if (names[0] != NULL)
        eb_findings_change(findings, "%s %u packages: %s", self->options.plan ? "remove" : "removed",
                           g_hash_table_size(set), text);
    if (self->options.plan)
        return EB_UNDO_DONE;
    if (names[0] != NULL) {
        eb_setup_say(self, "removing %u packages", g_hash_table_size(set));
        if (!eb_apt_act("purge", (const char *const *)names, error))
            return EB_UNDO_FAILED;
    }
    return g_hash_table_size(set) == n ? EB_UNDO_DONE : EB_UNDO_KEPT;
}

static gboolean
remove_account(const char *path, const char *name, GError **error)
{
    gboolean users = strcmp(path, "/etc/passwd") == 0;
    const struct passwd *user = users ? getpwnam(name) : NULL;
    const struct group *group = users ? NULL : getgrnam(name);
    const char *argv[] = {users ? "userdel" : "groupdel", name, NULL};

    if ((users && (user == NULL || user->pw_uid >= 1000 || user->pw_uid == 0)) ||
        (!users && (group == NULL || group->gr_gid >= 1000 || group->gr_mem[0] != NULL)))
        return TRUE;
    return eb_run(argv, 30000, NULL, error);
}

/* Accounts, groups and id ranges that the packages made, once the packages are gone. */
static EbUndone
undo_added(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_auto(GStrv) names = g_strsplit(entry->made != NULL ? entry->made : "", "\n", -1);
    gboolean ranges = g_str_has_prefix(entry->name, "/etc/sub");
    EbUndone done = EB_UNDO_DONE;

    if (!self->options.plan && eb_setup_ledger_find(self->ledger, "packages", "apt") != NULL)
        return EB_UNDO_KEPT;
    for (guint i = 0; names[i] != NULL; i++) {
        if (*names[i] == '\0')
            continue;
        if (ranges) {
            EbUndone one = eb_setup_remove_range(self, entry->name, names[i], TRUE, findings, error);
            if (one == EB_UNDO_FAILED)
                return one;
            done = one == EB_UNDO_KEPT ? one : done;
            continue;
        }
        eb_findings_change(findings, "%s %s from %s", self->options.plan ? "remove" : "removed", names[i], entry->name);
        if (!self->options.plan && !remove_account(entry->name, names[i], error))
            return EB_UNDO_FAILED;
    }
    return done;
}

static EbUndone
undo_left_directory(EbSetup *self, const EbLedgerEntry *entry)
{
    if (self->options.plan)
        return EB_UNDO_DONE;
    if (eb_setup_ledger_find(self->ledger, "packages", "apt") != NULL)
        return EB_UNDO_KEPT;
    /* Something else that is in it by now keeps it. */
    (void)rmdir(entry->name);
    return EB_UNDO_DONE;
}

static EbUndone
undo_packages(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    if (strcmp(entry->kind, "packages") == 0)
        return undo_apt(self, entry, findings, error);
    if (strcmp(entry->kind, "added") == 0)
        return undo_added(self, entry, findings, error);
    if (strcmp(entry->kind, "left-directory") == 0)
        return undo_left_directory(self, entry);
    return eb_setup_undo_place(self, entry, findings, error);
}

const EbSetupStep eb_setup_step_packages = {
    .id = "packages",
    .title = "programs this host needs",
    .undo_hint = "the packages go that were not there before and that nothing else needs",
    .check = check_packages,
    .apply = apply_packages,
    .undo = undo_packages,
};
