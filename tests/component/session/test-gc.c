/* SPDX-License-Identifier: MIT */
/* gc: what dead runs left is counted and goes; what lives stays. */
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-gc-disk.h"
#include "core/session/eb-gc-images.h"
#include "core/session/eb-pressure.h"
#include "core/session/eb-router.h"
#include "eb-session-fixture.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRUCTURED (EB_CHAT_CAP_STREAM | EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED)

static GPtrArray *
collect_classes(EbSessionFixture *f, gboolean plan, guint64 free_bytes)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_session_manager_gc_async(f->manager, plan, free_bytes, eb_test_result_ready, &done);
    GPtrArray *classes = eb_session_manager_gc_finish(f->manager, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return classes;
}

static char *
collect(EbSessionFixture *f, gboolean plan)
{
    g_autoptr(GPtrArray) classes = collect_classes(f, plan, 0);
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < classes->len; i++) {
        const EbGcClass *class = classes->pdata[i];
        /* Those of the whole account: of tests beside this one, too. */
        if (strcmp(class->name, "brokers") == 0)
            continue;
        if (class->before + class->removed + class->after > 0)
            g_string_append_printf(all, "%s %u-%u=%u ", class->name, class->before, class->removed, class->after);
    }
    return g_strstrip(g_string_free(g_steal_pointer(&all), FALSE));
}

static void
make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    close(fd);
}

static char *
in_state(EbSessionFixture *f, const char *path)
{
    return g_build_filename(f->dir, "state", path, NULL);
}

static void
make_dir(EbSessionFixture *f, const char *path)
{
    g_autofree char *whole = in_state(f, path);
    g_assert_cmpint(g_mkdir_with_parents(whole, 0700), ==, 0);
}

static gboolean
is_there(EbSessionFixture *f, const char *path)
{
    g_autofree char *whole = in_state(f, path);
    return g_file_test(whole, G_FILE_TEST_EXISTS);
}

static void
plant_guest(EbSessionFixture *f, const char *name, const char *run, const char *home)
{
    g_autofree char *path = g_build_filename(f->backend->dir, name, NULL);
    g_autofree char *labels = g_strdup_printf("s\n%s\n%s", run, home);
    eb_test_write_file(path, labels);
}

/* One of everything that a killed run leaves. */
static void
plant(EbSessionFixture *f, const char *ended)
{
    g_autofree char *run = g_strdup_printf("sessions/%s/run", ended);
    g_autofree char *run_socket = g_strdup_printf("state/%s/model.sock", run);
    g_autofree char *path = g_build_filename(f->dir, run_socket, NULL);
    g_autofree char *orphan = in_state(f, "sessions/orphan000001/state/big");
    g_autofree char *lock = in_state(f, "locks/project-old.lock");
    g_autofree char *dead = in_state(f, "try/dead/lock");
    g_autofree char *verify = in_state(f, "sessions/verify-abcdef");
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

    plant_guest(f, "eb-dead-1", "deadrundead1", f->manager->parts->home_id);
    plant_guest(f, "eb-dead-2", f->manager->parts->run_id, f->manager->parts->home_id);
    plant_guest(f, "eb-theirs", "deadrundead1", "anotherhome1");
    make_dir(f, run);
    make_socket(path);
    make_dir(f, "sessions/orphan000001/state");
    make_dir(f, "sessions/.gone-orphan000002/state");
    eb_test_write_file(orphan, "left");
    eb_test_write_file(lock, "1\n");
    eb_test_write_file(dead, "1\n");
    make_dir(f, "sessions/verify-abcdef/run");
    make_dir(f, "sessions/verify-young/run");
    g_assert_cmpint(utimensat(AT_FDCWD, verify, old, 0), ==, 0);
    make_dir(f, ".backup-dead");
    make_dir(f, ".backup-live");
    make_dir(f, "try/live/sessions/aaaaaaaaaaaa");
}

static void
test_each_class(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, "one", "say x", "{\"project\":\"web\"}");
    g_autofree char *ended = g_strdup(eb_session_get_record(eb_session_fixture_live(f, "one"))->id);
    eb_session_end(eb_session_fixture_live(f, "one"), EB_SESSION_END_STOPPED, NULL);
    eb_session_fixture_wait_ended(f, 1);
    eb_session_fixture_turn(f, "two", "say x", "{\"project\":\"api\"}");
    g_autofree char *live = g_strdup(eb_session_get_record(eb_session_fixture_live(f, "two"))->id);
    plant(f, ended);
    g_autofree char *try_root = in_state(f, "try/live");
    g_autoptr(EbDirLock) lock = eb_dir_lock_take(try_root, EB_STATE_LOCK_FILE, NULL);
    g_autofree char *backup = in_state(f, ".backup-live");
    int held = open(backup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(flock(held, LOCK_EX | LOCK_NB), ==, 0);

    g_autofree char *planned = collect(f, TRUE);
    g_assert_cmpstr(planned, ==, "guests 2-0=2 sockets 1-0=1 sessions 2-0=2 tries 1-0=1 locks 1-0=1 temporary 2-0=2");
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 4);
    g_assert_true(is_there(f, "sessions/orphan000001/state/big"));
    g_autofree char *done = collect(f, FALSE);
    g_assert_cmpstr(done, ==, "guests 2-2=0 sockets 1-1=0 sessions 2-2=0 tries 1-1=0 locks 1-1=0 temporary 2-2=0");
    g_autofree char *again = collect(f, FALSE);
    g_assert_cmpstr(again, ==, "");

    /* what lives, and what is not ours */
    g_autofree char *theirs = g_build_filename(f->backend->dir, "eb-theirs", NULL);
    g_autofree char *state = g_strdup_printf("sessions/%s/state", ended);
    g_autofree char *live_run = g_strdup_printf("sessions/%s/run/launch", live);
    g_assert_true(g_file_test(theirs, G_FILE_TEST_EXISTS));
    g_assert_true(is_there(f, state));
    g_assert_true(is_there(f, live_run));
    g_assert_true(is_there(f, "try/live/sessions/aaaaaaaaaaaa"));
    g_assert_true(is_there(f, "sessions/verify-young"));
    g_assert_true(is_there(f, ".backup-live"));
    eb_session_fixture_turn(f, "two", "say y", NULL);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
    close(held);
    g_assert_cmpint(g_unlink(theirs), ==, 0);
}

/* A backend that does not answer: nothing that a guest may have mounted goes, and the report says so. */
/* @orphan: started by a process that has ended by now */
static pid_t
start_broker(gboolean orphan)
{
    int ends[2];
    pid_t pid = -1;

    g_assert_cmpint(pipe(ends), ==, 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t broker = orphan ? fork() : 0;
        if (broker == 0) {
            prctl(PR_SET_NAME, "errand-box-broker");
            broker = getpid();
            if (write(ends[1], &broker, sizeof broker) == sizeof broker)
                pause();
        }
        _exit(0);
    }
    g_assert_cmpint(read(ends[0], &pid, sizeof pid), ==, sizeof pid);
    if (orphan)
        g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void
test_brokers(void)
{
    pid_t orphan = start_broker(TRUE), child = start_broker(FALSE);
    g_autofree char *orphan_text = g_strdup_printf("%d", orphan);
    g_autofree char *child_text = g_strdup_printf("%d", child);
    EbGcClass *class = eb_gc_class_new("brokers");

    g_assert_true(eb_gc_is_orphan_broker(orphan_text));
    g_assert_false(eb_gc_is_orphan_broker(child_text));
    g_assert_false(eb_gc_is_orphan_broker("1"));
    eb_gc_brokers(class);
    g_assert_cmpuint(class->before, >=, 1);
    g_assert_nonnull(strstr(class->note, "has no service any more; look at it, then: kill "));
    eb_gc_class_free(class);
    kill(orphan, SIGKILL);
    kill(child, SIGKILL);
    g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
}

static void
test_silent_backend(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    make_dir(f, "sessions/orphan000001/state");
    g_autofree char *dead = in_state(f, "try/dead/lock");
    g_autofree char *stale = in_state(f, "locks/project-old.lock");
    eb_test_write_file(dead, "1\n");
    eb_test_write_file(stale, "1\n");
    f->backend->fail_list = TRUE;
    g_autofree char *done = collect(f, FALSE);
    g_assert_cmpstr(done, ==, "sessions 1-0=1 tries 1-0=1 locks 1-1=0");
    g_assert_true(is_there(f, "sessions/orphan000001/state"));
    f->backend->fail_list = FALSE;
    g_autofree char *after = collect(f, FALSE);
    g_assert_cmpstr(after, ==, "sessions 1-1=0 tries 1-1=0");
}

/* B17: fifty sessions in batches of ten, some of which never start, some leaving half a guest: nothing is left of any. */
static void
test_fifty(void)
{
    g_autoptr(EbSessionFixture) f =
        eb_session_fixture_new(NULL, "[limits]\nmax_live_sessions = 10\nmax_concurrent_turns = 10\n", STRUCTURED);
    eb_session_fixture_open(f);
    for (guint batch = 0; batch < 5; batch++) {
        f->backend->fail_launch = batch == 1 || batch == 2;
        f->backend->half_launch = batch == 2;
        f->fail_state = batch == 3 ? EB_LAUNCH_OPEN : -1;
        guint ended = f->sessions_ended, turns = f->turns_ended;
        for (guint i = 0; i < 10; i++) {
            g_autofree char *thread = g_strdup_printf("thread-%u-%u", batch, i);
            g_autofree char *project = g_strdup_printf("{\"project\":\"web%u\"}", i);
            eb_fake_chat_say(f->chat, thread, "say x", project);
        }
        if (batch == 0 || batch == 4)
            eb_session_fixture_wait_turns(f, turns + 10);
        else
            eb_session_fixture_wait_ended(f, ended + 10);
        for (guint i = 0; i < 10 && (batch == 0 || batch == 4); i++) {
            g_autofree char *thread = g_strdup_printf("thread-%u-%u", batch, i);
            eb_session_prepare_removal(eb_session_fixture_live(f, thread));
            eb_session_end(eb_session_fixture_live(f, thread), EB_SESSION_END_STOPPED, NULL);
        }
        eb_session_fixture_wait_ended(f, ended + 10);
    }
    g_assert_cmpuint(f->backend->launched, ==, 40);
    /* Those that worked were stopped, not removed: their rows and state stay until somebody says so. */
    g_autofree char *done = collect(f, FALSE);
    g_assert_cmpstr(done, ==, "");
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
    g_assert_cmpuint(eb_session_fixture_count_dirs(f), ==, 20);
    g_autoptr(GHashTable) records = g_hash_table_ref(f->manager->records);
    g_autoptr(GList) ids = g_hash_table_get_keys(records);
    for (GList *at = ids; at != NULL; at = at->next) {
        g_auto(EbTestResult) removed = {0};
        g_autofree char *id = g_strdup(at->data);
        eb_session_manager_stop_session_async(f->manager, id, TRUE, NULL, eb_test_result_ready, &removed);
        g_assert_true(eb_session_manager_stop_session_finish(f->manager, eb_test_result_wait(&removed), NULL));
    }
    g_assert_cmpuint(eb_session_fixture_count_dirs(f), ==, 0);
}

static EbImageInfo *
image(const char *fingerprint, const char *alias, gint64 created, gboolean ours)
{
    EbImageInfo *info = eb_image_info_new(alias);
    info->fingerprint = g_strdup(fingerprint);
    info->created_unix = created;
    if (ours)
        g_hash_table_replace(info->properties, g_strdup("errand.recipe"), g_strdup("x"));
    return info;
}

static void
test_images(void)
{
    g_autoptr(GPtrArray) images = g_ptr_array_new_with_free_func((GDestroyNotify)eb_image_info_free);
    g_autoptr(GPtrArray) instances = g_ptr_array_new_with_free_func((GDestroyNotify)eb_instance_info_free);
    g_ptr_array_add(images, image("current", "errand-box/guest", 10, TRUE));
    g_ptr_array_add(images, image("used", "", 10, TRUE));
    g_ptr_array_add(images, image("young", "", 950, TRUE));
    g_ptr_array_add(images, image("foreign", "", 10, FALSE));
    g_ptr_array_add(images, image("old", "", 10, TRUE));
    g_ptr_array_add(images, image("kept-by-name", "mine", 10, TRUE));
    EbInstanceInfo *instance = eb_instance_info_new("guest");
    instance->image = g_strdup("used");
    g_ptr_array_add(instances, instance);
    g_ptr_array_add(instances, eb_instance_info_new("of-no-known-image"));
    g_autoptr(GPtrArray) picked = eb_gc_images_pick(images, instances, 1000, 60);
    g_assert_cmpuint(picked->len, ==, 1);
    g_assert_cmpstr(((EbImageInfo *)picked->pdata[0])->fingerprint, ==, "old");
    g_ptr_array_set_size(instances, 0);
    g_autoptr(GPtrArray) more = eb_gc_images_pick(images, instances, 1010, 60);
    g_assert_cmpuint(more->len, ==, 3);
}

/* --- pressure --- */

static EbPressureItem *
item(const char *id, guint64 bytes, gint64 used_ms, gboolean live, gboolean pinned)
{
    EbPressureItem *self = eb_pressure_item_new(id, FALSE, bytes, used_ms);
    self->live = live;
    self->pinned = pinned;
    return self;
}

static void
test_pick(void)
{
    const gint64 now = 100 * EB_PRESSURE_RECENT_MS;
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func((GDestroyNotify)eb_pressure_item_free);
    guint candidates = 0;
    g_assert_cmpuint(eb_pressure_wanted(200, 100), ==, 0);
    g_assert_cmpuint(eb_pressure_wanted(199, 100), ==, 51);
    g_assert_cmpuint(eb_pressure_wanted(0, 100), ==, 250);
    g_ptr_array_add(items, item("second", 10, 2, FALSE, FALSE));
    g_ptr_array_add(items, item("live", 100, 1, TRUE, FALSE));
    g_ptr_array_add(items, item("pinned", 100, 1, FALSE, TRUE));
    g_ptr_array_add(items, item("recent", 100, now - EB_PRESSURE_RECENT_MS + 1, FALSE, FALSE));
    g_ptr_array_add(items, item("empty", 0, 1, FALSE, FALSE));
    g_ptr_array_add(items, item("first", 10, 1, FALSE, FALSE));
    g_ptr_array_add(items, item("third", 10, 3, FALSE, FALSE));
    static const struct {
        guint64 wanted;
        guint picked;
    } cases[] = {{0, 0}, {1, 1}, {10, 1}, {11, 2}, {30, 3}, {1000, 3}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) picked = eb_pressure_pick(items, cases[i].wanted, now, &candidates);
        g_assert_cmpuint(picked->len, ==, cases[i].picked);
        g_assert_cmpuint(candidates, ==, 3);
        static const char *const order[] = {"first", "second", "third"};
        for (guint k = 0; k < picked->len; k++)
            g_assert_cmpstr(((EbPressureItem *)picked->pdata[k])->id, ==, order[k]);
    }
}

/* A session that is over, whose agent kept 256 KiB, last used @age_ms ago. */
static void
make_ended(EbSessionFixture *f, const char *id, gint64 age_ms, gboolean pinned)
{
    g_autofree char *path = g_strdup_printf("sessions/%s/state/kept", id);
    g_autofree char *whole = in_state(f, path);
    g_autofree char *content = g_strnfill(256 * 1024, 'x');
    g_autoptr(EbSessionRecord) record = eb_session_record_new(id, "web", "test");
    g_auto(EbTestResult) saved = {0};
    eb_test_write_file(whole, content);
    g_free(record->state);
    record->state = g_strdup("ended");
    record->agent_session = g_strdup("acp-1");
    record->last_activity_ms = g_get_real_time() / 1000 - age_ms;
    eb_session_store_save_async(f->manager->parts->store, record, NULL, eb_test_result_ready, &saved);
    g_assert_true(eb_session_store_finish(f->manager->parts->store, eb_test_result_wait(&saved), NULL));
    g_hash_table_replace(f->manager->records, record->id, eb_session_record_ref(record));
    if (!pinned)
        return;
    g_auto(EbTestResult) done = {0};
    eb_session_manager_pin_async(f->manager, id, TRUE, eb_test_result_ready, &done);
    g_assert_true(eb_session_manager_pin_finish(f->manager, eb_test_result_wait(&done), NULL));
}

/* B19: the longest unused go until there is room; what is live, recent or pinned stays, however much is asked for. */
static void
test_pressure(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, "live", "say x", "{\"project\":\"api\"}");
    make_ended(f, "oldest000001", 9 * EB_PRESSURE_RECENT_MS, FALSE);
    make_ended(f, "pinned000002", 8 * EB_PRESSURE_RECENT_MS, TRUE);
    make_ended(f, "older0000003", 7 * EB_PRESSURE_RECENT_MS, FALSE);
    make_ended(f, "recent000004", 1000, FALSE);
    make_dir(f, "try/finished/sessions/aaaaaaaaaaaa/state");
    g_autofree char *try_db = in_state(f, "try/finished/state.db");
    g_autofree char *try_file = in_state(f, "try/finished/sessions/aaaaaaaaaaaa/state/kept");
    sqlite3 *db = eb_store_open_blocking(try_db, NULL);
    g_assert_cmpint(
        sqlite3_exec(db,
                     "INSERT INTO session (id, project, agent, agent_session, state, started, last_activity)"
                     " VALUES ('aaaaaaaaaaaa','p','a','acp-1','ended',1,1)",
                     NULL, NULL, NULL),
        ==, SQLITE_OK);
    sqlite3_close(db);
    g_autofree char *content = g_strnfill(256 * 1024, 'x');
    eb_test_write_file(try_file, content);

    g_autoptr(GPtrArray) planned = collect_classes(f, TRUE, 300 * 1024);
    const EbGcClass *idle = planned->pdata[planned->len - 1];
    g_assert_cmpstr(idle->name, ==, "idle");
    g_assert_cmpuint(idle->before, ==, 3);
    g_assert_cmpuint(idle->removed, ==, 0);
    g_assert_nonnull(strstr(idle->note, "would go: try finished"));
    g_assert_true(is_there(f, "try/finished/state.db"));

    g_autoptr(GPtrArray) some = collect_classes(f, FALSE, 500 * 1024);
    idle = some->pdata[some->len - 1];
    g_assert_cmpuint(idle->removed, ==, 2);
    g_assert_cmpuint(idle->bytes, >=, 500 * 1024);
    g_assert_nonnull(strstr(idle->note, "session oldest000001"));
    g_assert_false(is_there(f, "try/finished"));
    g_assert_false(is_there(f, "sessions/oldest000001"));
    g_assert_true(is_there(f, "sessions/older0000003/state/kept"));

    g_autoptr(GPtrArray) all = collect_classes(f, FALSE, (guint64)1 << 40);
    idle = all->pdata[all->len - 1];
    g_assert_cmpuint(idle->removed, ==, 1);
    g_assert_false(is_there(f, "sessions/older0000003"));
    g_assert_true(is_there(f, "sessions/pinned000002/state/kept"));
    g_assert_true(is_there(f, "sessions/recent000004/state/kept"));
    /* its record stays, and says why its agent cannot go on */
    EbSessionRecord *record = g_hash_table_lookup(f->manager->records, "oldest000001");
    g_assert_nonnull(record);
    g_assert_null(record->agent_session);
    g_assert_cmpstr(record->end_reason, ==, "given up for space");
    eb_session_fixture_turn(f, "live", "say y", NULL);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
    /* unpinned it goes with the others; the pin outlives the service */
    eb_session_fixture_close(f);
    eb_session_fixture_open(f);
    record = g_hash_table_lookup(f->manager->records, "pinned000002");
    g_assert_true(record->pinned);
    g_auto(EbTestResult) done = {0};
    eb_session_manager_pin_async(f->manager, "pinned", FALSE, eb_test_result_ready, &done);
    g_assert_true(eb_session_manager_pin_finish(f->manager, eb_test_result_wait(&done), NULL));
    g_autoptr(GPtrArray) last = collect_classes(f, FALSE, (guint64)1 << 40);
    g_assert_cmpuint(((const EbGcClass *)last->pdata[last->len - 1])->removed, ==, 1);
    g_assert_false(is_there(f, "sessions/pinned000002"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/gc/each-class", test_each_class);
    g_test_add_func("/gc/brokers", test_brokers);
    g_test_add_func("/gc/silent-backend", test_silent_backend);
    g_test_add_func("/gc/fifty", test_fifty);
    g_test_add_func("/gc/images", test_images);
    g_test_add_func("/gc/pick", test_pick);
    g_test_add_func("/gc/pressure", test_pressure);
    return g_test_run();
}
