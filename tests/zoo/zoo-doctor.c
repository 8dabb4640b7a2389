/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "errand-box-plugin.h"

/*
 * A plugin with three checks: "-good" is fine, "-late" needs a moment, "-bad" does what ZOO_BAD says. Whatever that is,
 * the two others have to report.
 */

#define GOOD "x-" ZOO_NAME "-good"
#define LATE "x-" ZOO_NAME "-late"
#define BAD "x-" ZOO_NAME "-bad"

static void G_GNUC_UNUSED
segfault(void)
{
    /* As a bug would, past any handler. */
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void G_GNUC_UNUSED
leave(void)
{
    exit(0);
}

static guint64 depth;

static int
recurse(volatile char *above)
{
    volatile char here[4096];

    here[0] = above[0];
    /* Never true, which no compiler knows. */
    return ++depth == G_MAXUINT64 ? 0 : recurse(here) + here[0];
}

static void G_GNUC_UNUSED
dig(void)
{
    volatile char first = 1;

    recurse(&first);
}

/* Deaf to its cancellable. */
static void G_GNUC_UNUSED
sleep_on(void)
{
    for (;;)
        pause();
}

static void G_GNUC_UNUSED
stop_all(void)
{
    raise(SIGSTOP);
}

static void
write_for_ever(int fd, const char *text)
{
    while (write(fd, text, strlen(text)) > 0 || errno == EINTR)
        ;
}

/* stderr is taken in and thrown away; beyond a bound nobody listens any more, which is no reason to wait. */
static void G_GNUC_UNUSED
flood_stderr(void)
{
    write_for_ever(2, "what a fine plugin this is\n");
}

/* The pipe to the doctor, which it was never told of. */
static void G_GNUC_UNUSED
flood_pipe(void)
{
    write_for_ever(3, "{\"line\":\"result\",\"id\":\"E-01\",\"status\":\"ok\",\"observed\":\"all is well\"}\n");
}

static void G_GNUC_UNUSED
flood_line(void)
{
    write_for_ever(3, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

/* Somebody who outlives the process, in a session of its own and with the doctor's pipes open. */
static void G_GNUC_UNUSED
leave_daemon(void)
{
    const char *path = g_getenv("ZOO_LOCK");
    int fd = open(path, O_RDWR | O_CLOEXEC);

    flock(fd, LOCK_EX | LOCK_NB);
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            for (;;)
                pause();
        _exit(0);
    }
    segfault();
}

static void G_GNUC_UNUSED
eat_memory(void)
{
    for (;;) {
        volatile char *piece = g_malloc(64 << 20);
        piece[0] = 1;
    }
}

static EbCheckResult *
run_good(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return eb_check_result_new(EB_CHECK_OK, "good");
}

/* Still at work when the bad one does its worst; alone it comes back. */
static EbCheckResult *
run_late(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_usleep(200 * 1000);
    return eb_check_result_new(EB_CHECK_OK, "late");
}

static EbCheckResult *
run_bad(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
#ifdef ZOO_BAD
    g_usleep(50 * 1000);
    ZOO_BAD();
#endif
    return eb_check_result_new(EB_CHECK_OK, "not so bad");
}

#ifdef __SANITIZE_ADDRESS__
#define DEADLINE_MS 5000
#else
#define DEADLINE_MS 1200
#endif

static const EbCheckInfo infos[] = {
    {.id = GOOD, .title = "good", .expected = "good", .remedy = "none", .deadline_ms = DEADLINE_MS},
    {.id = LATE, .title = "late", .expected = "late", .remedy = "none", .deadline_ms = DEADLINE_MS},
    {.id = BAD, .title = "bad", .expected = "bad", .remedy = "none", .deadline_ms = DEADLINE_MS},
};

typedef struct {
    GObject parent_instance;
} ZooPlugin;

typedef struct {
    GObjectClass parent_class;
} ZooPluginClass;

static gboolean
zoo_configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    static const EbCheckFunc FUNCS[] = {run_good, run_late, run_bad};

#ifdef ZOO_BAD_CONFIGURE
    ZOO_BAD_CONFIGURE();
#endif
    for (guint i = 0; i < G_N_ELEMENTS(infos); i++) {
        g_autoptr(EbDoctorCheck) check = eb_simple_check_new(&infos[i], FUNCS[i]);
        if (!eb_plugin_context_provide(context, EB_EXTENSION_DOCTOR_CHECK, infos[i].id, G_OBJECT(check), error))
            return FALSE;
    }
    return TRUE;
}

static void
zoo_iface_init(EbPluginInterface *iface)
{
    iface->configure = zoo_configure;
}

static GType
zoo_plugin_get_type(void)
{
    static gsize once = 0;

    if (g_once_init_enter(&once)) {
        const GInterfaceInfo plugin = {(GInterfaceInitFunc)(void (*)(void))zoo_iface_init, NULL, NULL};
        GType type = g_type_register_static_simple(G_TYPE_OBJECT, ZOO_TYPE, sizeof(ZooPluginClass), NULL,
                                                   sizeof(ZooPlugin), NULL, G_TYPE_FLAG_FINAL);

        g_type_add_interface_static(type, EB_TYPE_PLUGIN, &plugin);
        g_once_init_leave(&once, type);
    }
    return once;
}

static EbPlugin *
create(void)
{
    return g_object_new(zoo_plugin_get_type(), NULL);
}

EB_PLUGIN_DEFINE(ZOO_NAME, "1.0", create);
