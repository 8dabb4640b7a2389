/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/provision/eb-setup-private.h"

/* Proof instead of hope: a process with the account's ids and groups asks for its project over the socket that sessions
 * will use. */

#define REACH_S 15
#define MAX_GROUPS 64

typedef struct {
    struct sockaddr_un address;
    char request[512];
    gsize request_length;
    uid_t uid;
    gid_t gid;
    gid_t groups[MAX_GROUPS];
    int n_groups;
} Probe;

enum {
    REACH_OK = 0,
    REACH_IDS = 2,
    REACH_CONNECT = 3,
    REACH_SILENT = 4,
    REACH_REFUSED = 5,
    REACH_HANGS = 6,
};

/* In the child: calls that are safe after fork alone. */
static int
probe(const Probe *self)
{
    char answer[16] = {0};
    gsize got = 0;
    int fd;

    alarm(REACH_S);
    if (setgroups((size_t)self->n_groups, self->groups) < 0 || setresgid(self->gid, self->gid, self->gid) < 0 ||
        setresuid(self->uid, self->uid, self->uid) < 0)
        return REACH_IDS;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&self->address, sizeof self->address) < 0)
        return REACH_CONNECT;
    if (send(fd, self->request, self->request_length, MSG_NOSIGNAL) != (gssize)self->request_length)
        return REACH_SILENT;
    while (got < sizeof answer - 1) {
        gssize n = recv(fd, answer + got, sizeof answer - 1 - got, 0);
        if (n <= 0)
            return REACH_SILENT;
        got += (gsize)n;
    }
    return strncmp(answer, "HTTP/1.1 200", 12) == 0 ? REACH_OK : REACH_REFUSED;
}

static int
run_probe(const Probe *self)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(probe(self));
    if (pid < 0)
        return REACH_IDS;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : REACH_HANGS;
}

static gboolean
check_reach(EbSetup *self, EbFindings *findings, GError **error)
{
    static const char *const REASONS[] = {"",
                                          "",
                                          "its ids cannot be taken",
                                          "it cannot connect (is it in the group incus?)",
                                          "no answer (the log of incus-user says why)",
                                          "the project is refused to it (errand-box doctor)",
                                          "no answer in time (errand-box doctor)"};
    g_autofree char *socket_path = g_build_filename(self->daemon_dir, "unix.socket.user", NULL);
    const char *project = eb_setup_get_project(self);
    g_autofree char *own = NULL;
    g_autofree char *path = NULL;
    Probe what = {.n_groups = MAX_GROUPS};
    int result;

    if (self->options.plan || !eb_setup_account_ids(self, &what.uid, &what.gid))
        return TRUE;
    own = g_strdup_printf("user-%u", (guint)what.uid);
    if (g_strcmp0(project, own) != 0) {
        eb_findings_note(findings, "project %s is the operator's own: not tried", project);
        return TRUE;
    }
    if (strlen(socket_path) >= sizeof what.address.sun_path ||
        getgrouplist(self->account, what.gid, what.groups, &what.n_groups) < 0) {
        eb_set_error(error, EB_ERROR_CONFIG, "provision.reach", "%s: path too long, or the account has too many groups",
                     socket_path);
        return FALSE;
    }
    path = eb_provision_path("/1.0/projects/%s", project);
    what.address.sun_family = AF_UNIX;
    g_strlcpy(what.address.sun_path, socket_path, sizeof what.address.sun_path);
    what.request_length = (gsize)g_snprintf(what.request, sizeof what.request,
                                            "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    result = run_probe(&what);
    if (result == REACH_OK) {
        eb_findings_note(findings, "%s reaches project %s by %s", self->account, project, socket_path);
        return TRUE;
    }
    if ((result == REACH_REFUSED || result == REACH_SILENT) && !self->reach_renewed &&
        eb_setup_knows_incus_user(self, (guint)what.uid)) {
        eb_findings_change(findings, "have incus-user make a new certificate for %s: the old one is refused",
                           self->account);
        return TRUE;
    }
    eb_set_error(error, EB_ERROR_FAILED, "provision.reach", "%s does not reach project %s by %s: %s", self->account,
                 project, socket_path, result < (int)G_N_ELEMENTS(REASONS) ? REASONS[result] : "no reason known");
    return FALSE;
}

static gboolean
apply_reach(EbSetup *self, EbFindings *findings, GError **error)
{
    uid_t uid = 0;
    gid_t gid = 0;

    self->reach_renewed = TRUE;
    return !eb_setup_account_ids(self, &uid, &gid) || eb_setup_forget_incus_user(self, (guint)uid, error);
}

const EbSetupStep eb_setup_step_reach = {
    .id = "reach",
    .title = "the account reaches its project",
    .check = check_reach,
    .apply = apply_reach,
};
