/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-config.h"
#include "core/watchdog/eb-watchdog.h"
#include "tests/lib/eb-test.h"

G_BEGIN_DECLS

/** WdMood: how the backend answers. */
typedef enum { WD_ANSWERS, WD_SILENT, WD_NEVER_RETURNS, WD_GONE, WD_REFUSES } WdMood;

/** WdBackend: a backend of guests without processes. */
#define WD_TYPE_BACKEND (wd_backend_get_type())
G_DECLARE_FINAL_TYPE(WdBackend, wd_backend, WD, BACKEND, GObject)
struct _WdBackend {
    GObject parent_instance;
    WdMood mood;
    GPtrArray *guests; /* (element-type EbInstanceInfo) */
    GPtrArray *kept;   /* (element-type GTask): calls that never return */
    guint lists, stops, at_once, most_at_once;
};

/** wd_add_guest: @home, @run: (nullable): its labels */
void wd_add_guest(WdBackend *self, const char *name, const char *home, const char *run);
gboolean wd_has_guest(WdBackend *self, const char *name);

/** WdFixture: a state directory, a service (this program again, a process of its own), a watchdog. */
typedef struct {
    char *dir, *state, *locks, *home, *shown;
    EbConfig *config;
    WdBackend *backend;
    EbWatchdogLimits limits;
    EbWatchdog *watchdog;
    GSubprocess *service;
    gboolean ended;
} WdFixture;
void wd_set_up(WdFixture *self, gconstpointer data);
void wd_tear_down(WdFixture *self, gconstpointer data);
/** wd_be_the_service: what this program does when it is started as the service; @what: "old": it takes no reports;
 * "mute": it does not listen; else "new" */
G_NORETURN void wd_be_the_service(const char *state_dir, const char *what);
void wd_start_service(WdFixture *self, const char *what);
gint64 wd_service_pid(WdFixture *self);
/** wd_has_service_ended: an EbTestCondition with the WdFixture as its data. */
gboolean wd_has_service_ended(gpointer user_data);
void wd_start_watchdog(WdFixture *self);
/** wd_wait_shown: until the watchdog's file says so; NULL = whatever. */
void wd_wait_shown(WdFixture *self, const char *service, const char *backend);
/** wd_read_shown: (transfer full) (nullable) */
JsonNode *wd_read_shown(WdFixture *self);
/** wd_wait_told: until what the service was told ends with @end. */
void wd_wait_told(WdFixture *self, const char *end);
/** wd_read_reports: (transfer full): what the service was told, "METHOD STATE TARGET" a line. */
char *wd_read_reports(WdFixture *self);

G_END_DECLS
