/* SPDX-License-Identifier: MIT */
/* The command table. Help, parser and the test of the documentation all read this. */
#include "core/cli/eb-cli-commands.h"

#define NO_OPTIONS                                                                                                     \
    (const EbCliOption[])                                                                                              \
    {                                                                                                                  \
        {                                                                                                              \
            NULL                                                                                                       \
        }                                                                                                              \
    }
#define ONE_FORM(operands, min, max, help)                                                                             \
    (const EbCliVerb[])                                                                                                \
    {                                                                                                                  \
        {"", operands, min, max, NULL, help},                                                                          \
        {                                                                                                              \
            NULL                                                                                                       \
        }                                                                                                              \
    }

static const EbCliOption global_options[] = {
    {"config", 0, "FILE", FALSE, "read this configuration alone (also: ERRAND_BOX_CONFIG)"},
    {"json", 0, NULL, FALSE, "one JSON document on stdout, or one event a line, and nothing else"},
    {"verbose", 'v', NULL, TRUE, "say more; up to -vvv"},
    {"help", 'h', NULL, FALSE, "this text"},
    {"version", 0, NULL, FALSE, "the version"},
    {NULL},
};

static const EbCliOption setup_options[] = {
    {"creds", 0, "FILE", FALSE, "creds.env with the credentials to keep"},
    {"env", 0, "FILE", FALSE, "errand-box.env with the settings"},
    {"plan", 0, NULL, FALSE, "print every change and make none"},
    {"yes-kernel-modules", 0, NULL, FALSE, "install packages that change the kernel without asking"},
    {"undo", 0, NULL, FALSE, "take back what setup made, except what others use now"},
    {"yes-data", 0, NULL, FALSE, "undo: sessions, projects and credentials too, for good"},
    {"stop-daemons", 0, NULL, FALSE, "end the container daemons that setup started where no supervisor runs"},
    {NULL},
};

static const EbCliOption doctor_options[] = {
    {"check", 0, "ID", TRUE, "run this check alone; may be repeated"},
    {"list", 0, NULL, FALSE, "say what is checked"},
    {"strict", 0, NULL, FALSE, "exit 3 when anything is degraded"},
    {"watch", 0, NULL, FALSE, "run the quick checks alone, of what changes by itself"},
    {"service", 0, NULL, FALSE, "run those alone that can keep the service from taking sessions, as it does itself"},
    {NULL},
};
static const EbCliOption doctor_worker_options[] = {
    {"check", 0, "ID", TRUE, "run this check alone; may be repeated"},
    {"list", 0, NULL, FALSE, "name the checks, run none"},
    {"watch", 0, NULL, FALSE, "the quick checks alone"},
    {"service", 0, NULL, FALSE, "those alone that can keep the service from taking sessions"},
    {NULL},
};

static const EbCliOption up_options[] = {
    {"foreground", 0, NULL, FALSE, "in this terminal, even where a supervisor runs"},
    {NULL},
};

static const EbCliOption try_options[] = {
    {"project", 0, "NAME", FALSE, "directory below project_root, made when missing (default: try)"},
    {"agent", 0, "NAME", FALSE, "agent profile (default: [session] agent)"},
    {"model", 0, "NAME", FALSE, "model (default: [session] model, else the agent's own)"},
    {"resume", 0, "ID", FALSE, "go on with an earlier try, whose id it printed"},
    {"permissions", 0, "POLICY", FALSE, "ask, allow or reject what the agent asks permission for (default: ask)"},
    {"service", 0, NULL, FALSE, "run the turn in the service instead of in this process"},
    {"session", 0, "ID", FALSE, "with --service: go on with this session of the service"},
    {NULL},
};

static const EbCliVerb sessions_verbs[] = {
    {"", "", 0, 0, NULL, "the same as list"},
    {"list", "", 0, 0, NULL, "what sessions exist"},
    {"show", "ID", 1, 1, NULL, "one session in detail"},
    {"logs", "ID", 1, 1, NULL, "what was said and done"},
    {"stop", "ID", 1, 1, NULL, "end its guest; the session can be continued"},
    {"allow", "ID HOST", 2, 2, NULL, "let this session alone reach one more host, until it is removed"},
    {"deny", "ID HOST", 2, 2, NULL, "take that back; connections that are open stay"},
    {"remove", "ID", 1, 1, NULL, "end it and remove what it left (needs --yes)"},
    {"pin", "ID", 1, 1, NULL, "keep what its agent has, also when a disk is full"},
    {"unpin", "ID", 1, 1, NULL, "do so no more"},
    {"prune", "", 0, 0, NULL, "remove what ended tries left on disk"},
    {NULL},
};
static const EbCliOption sessions_options[] = {
    {"yes", 0, NULL, FALSE, "remove: yes, for good"},
    {"egress", 0, NULL, FALSE, "logs: every connection its guest made or tried, and whether that record is whole"},
    {NULL},
};

static const EbCliVerb image_verbs[] = {
    {"build", "", 0, 0, NULL, "make the guest image and import it"},
    {"list", "", 0, 0, NULL, "images the backend has"},
    {"verify", "", 0, 0, NULL, "is the image what the recipe makes, and does all of it work in a guest?"},
    {NULL},
};
static const EbCliOption image_options[] = {
    {"agents", 0, "A,B", FALSE, "agents of pins.toml to install (default: the recipe's)"},
    {"cache", 0, "DIR", FALSE, "build: keep built images here (default: /var/cache/errand-box/images)"},
    {"no-import", 0, NULL, FALSE, "build: make it, but do not give it to the backend"},
    {NULL},
};

static const EbCliVerb creds_verbs[] = {
    {"list", "", 0, 0, NULL, "names, where each is kept, since when and until when; never a value"},
    {"set", "NAME", 1, 1, NULL, "keep the value read from stdin, or from --file"},
    {"remove", "NAME", 1, 1, NULL, "forget a value"},
    {"import", "FILE", 1, 1, NULL, "keep every value of a creds.env"},
    {"seal", "", 0, 0, NULL, "move what lies in plain files into the sealed store; makes its key when there is none"},
    {NULL},
};
static const EbCliOption creds_options[] = {
    {"file", 0, "FILE", FALSE, "set: read the value from this file"},
    {"expires", 0, "TIME", FALSE, "set: until when it works, as 30d or 2027-01-31T12:00:00Z"},
    {"old-key", 0, "FILE", FALSE, "seal: what opened the sealed store until now; it is closed with the present key"},
    {"replace", 0, NULL, FALSE, "seal: take the plain value where the sealed one differs"},
    {"store", 0, "NAME", FALSE, "the credential store to use (default: the first that can be written)"},
    {NULL},
};

/* Each verb has a row here and one in cmd-maint.c. */
static const EbCliVerb maint_verbs[] = {
    {"", "", 0, 0, NULL, "look what is due (image, pins, gc, room on the disk) and do it; for a timer"},
    {"backup", "FILE", 1, 1, NULL, "put the state into one file, the service running or not; \"-\": standard output"},
    {"restore", "FILE", 1, 1, NULL, "take the state back from such a file, the service down; \"-\": standard input"},
    {"gc", "", 0, 0, NULL, "remove what dead runs left: guests, sockets, state, locks, old images; each counted"},
    {"images", "", 0, 0, NULL, "make the guest image anew when its recipe changed or it is old; remove old ones"},
    {"pins", "", 0, 0, NULL, "check what was fetched, and remove from the cache what is no longer pinned"},
    {"selftest", "", 0, 0, NULL, "kill a service of its own at every step, and look at what is left after each start"},
    {NULL},
};
static const EbCliOption maint_options[] = {
    {"replace", 0, NULL, FALSE, "restore: also over a state that is not empty, which is kept aside"},
    {"free", 0, "SIZE", FALSE,
     "gc: free this much, giving up what was not used for longest; never what is live or pinned"},
    {"plan", 0, NULL, FALSE, "gc, images, no verb: say what would be done, and do nothing"},
    {"days", 0, "N", FALSE, "images, no verb: an image is old after so many days (default: 30)"},
    {"kills", 0, "N", FALSE, "selftest: how often to kill (default: 200)"},
    {"jobs", 0, "N", FALSE, "selftest: services at one time (default: 3)"},
    {"seed", 0, "N", FALSE, "selftest: of an earlier run, to have its kills again in the same order"},
    {NULL},
};

static const EbCliVerb pins_verbs[] = {
    {"verify", "", 0, 0, NULL,
     "without network: is pins.toml well formed, and all that was fetched still what it names?"},
    {"fetch", "[NAME]", 0, 1, NULL, "fetch what is pinned into the cache, checked"},
    {"update", "", 0, 0, NULL, "look for newer versions, rewrite pins.toml, print a summary for a pull request"},
    {NULL},
};
static const EbCliOption pins_options[] = {
    {"tree", 0, "DIR", FALSE, "directory with pins.toml and guest/ (default: what this program came with)"},
    {"plan", 0, NULL, FALSE, "update: say what is newer and change nothing"},
    {"cache", 0, "DIR", FALSE, "keep what is fetched here (default: /var/cache/errand-box/pins for root)"},
    {NULL},
};

static const EbCliVerb plugin_verbs[] = {
    {"", "", 0, 0, NULL, "the same as list"},
    {"list", "", 0, 0, NULL, "plugins found: state, ABI, what each provides"},
    {"show", "NAME", 1, 1, NULL, "one plugin, and what it may touch"},
    {"check", "FILE", 1, 1, NULL, "would this module be loaded?"},
    {NULL},
};

static const EbCliVerb config_verbs[] = {
    {"check", "", 0, 0, NULL, "report every problem with file and line"},
    {"show", "", 0, 0, NULL, "the merged configuration, each value with where it is from"},
    {"schema", "", 0, 0, NULL, "the JSON schema of the file"},
    {NULL},
};

static const EbCliOption watchdog_options[] = {
    {"once", 0, NULL, FALSE, "look once, say what is seen, and do nothing about it"},
    {"supervised", 0, NULL, FALSE, "a supervisor starts the service again: end one that hangs"},
    {NULL},
};

static const EbCliCommand commands[] = {
    {"setup", "prepares this host; may be repeated", ONE_FORM("", 0, 0, NULL), setup_options, eb_cmd_setup, FALSE},
    {"doctor", "checks this host", ONE_FORM("", 0, 0, NULL), doctor_options, eb_cmd_doctor, FALSE},
    {"doctor-worker", "runs the checks of one plugin for the doctor", ONE_FORM("PLUGIN", 1, 1, NULL),
     doctor_worker_options, eb_cmd_doctor_worker, TRUE},
    {"up", "starts the service and waits until it is ready", ONE_FORM("", 0, 0, NULL), up_options, eb_cmd_up, FALSE},
    {"down", "ends the service and waits until it is gone", ONE_FORM("", 0, 0, NULL), NO_OPTIONS, eb_cmd_down, FALSE},
    {"serve", "runs the service in the foreground", ONE_FORM("", 0, 0, NULL), NO_OPTIONS, eb_cmd_serve, FALSE},
    {"watchdog", "looks after the service and its backend",
     ONE_FORM("", 0, 0,
              "Runs until it is told to stop (also as the program errand-box-watchdog). With --once: exit 0 when the\n"
              "service and the container backend answer, else 1."),
     watchdog_options, eb_cmd_watchdog, FALSE},
    {"status", "one screen of how the service is, also when it is down", ONE_FORM("", 0, 0, NULL), NO_OPTIONS,
     eb_cmd_status, FALSE},
    {"try", "one errand on this terminal",
     ONE_FORM("PROMPT...", 1, 1024,
              "Starts a guest, runs one turn, prints what the agent says and does. PROMPT \"-\": read from stdin."),
     try_options, eb_cmd_try, FALSE},
    {"sessions", "what sessions exist and what they left on disk", sessions_verbs, sessions_options, eb_cmd_sessions,
     FALSE},
    {"image", "the guest image", image_verbs, image_options, eb_cmd_image, FALSE},
    {"creds", "credential stores; values come from stdin or a file and are never shown", creds_verbs, creds_options,
     eb_cmd_creds, FALSE},
    {"maint", "upkeep of this host", maint_verbs, maint_options, eb_cmd_maint, FALSE},
    {"pins", "pins.toml: what is fetched, checked before use", pins_verbs, pins_options, eb_cmd_pins, FALSE},
    {"plugin", "plugins: state, ABI, what each provides and may touch", plugin_verbs, NO_OPTIONS, eb_cmd_plugin, FALSE},
    {"config", "the configuration", config_verbs, NO_OPTIONS, eb_cmd_config, FALSE},
    {"version", "versions of the program, the plugin ABI and the libraries in use", ONE_FORM("", 0, 0, NULL),
     NO_OPTIONS, eb_cmd_version, FALSE},
    {NULL},
};

const EbCliCommand *
eb_cli_commands(void)
{
    return commands;
}

const EbCliOption *
eb_cli_global_options(void)
{
    return global_options;
}
