/* SPDX-License-Identifier: MIT */
#include "discord-gateway-state.h"

#include "discord-gateway-close.h"

#include <string.h>

/* Discord asks for a random wait in this range after op 9. */
#define INVALID_MIN_MS 1000
#define INVALID_MAX_MS 5000
#define FAULT_MS 5000
#define LIMITED_MS 60000
/* Fewer sessions left than this is worth a warning. */
#define REMAINING_LOW 100

typedef enum { VIA_NONE, VIA_RESUME_URL, VIA_MAIN_URL } Via;

struct _DiscordGatewayState {
    const DiscordSite *site;
    guint intents;
    GRand *random;
    GQueue todo; /* (element-type DiscordGatewayAction): a handful for each call */
    DiscordGatewayPhase phase;
    gint64 due; /* of the phase */

    DiscordGatewaySession session;
    guint epoch;
    gint64 handled;
    gint64 lost_at; /* when the session was last connected */

    DiscordIdentifyBudget budget;
    char *url; /* (nullable): the main one */
    gint64 asked_at;
    gint64 remaining; /* sessions that may be started until reset_at; -1 = not known */
    gint64 reset_at;
    gboolean ask_again;

    Via via;
    gint64 up_since;   /* -1: not up */
    gboolean resuming; /* this connection is to take up the session */
    guint failures;    /* connections in a row that did not hold */
    guint resumes;     /* RESUMEs in a row that did not hold */
    gboolean full;

    DiscordHeart heart;
    gboolean open; /* there is a connection, or a try for one, that must be closed */
};

void
discord_gateway_action_clear(DiscordGatewayAction *self)
{
    g_clear_pointer(&self->text, g_free);
    g_clear_error(&self->error);
    self->what = DISCORD_GATEWAY_DO_NOTHING;
}

static void
action_free(gpointer data)
{
    discord_gateway_action_clear(data);
    g_free(data);
}

static DiscordGatewayAction *
add(DiscordGatewayState *self, DiscordGatewayDo what)
{
    DiscordGatewayAction *action = g_new0(DiscordGatewayAction, 1);
    action->what = what;
    g_queue_push_tail(&self->todo, action);
    return action;
}

static void G_GNUC_PRINTF(3, 4) add_log(DiscordGatewayState *self, GLogLevelFlags level, const char *format, ...)
{
    va_list arguments;
    DiscordGatewayAction *action = add(self, DISCORD_GATEWAY_DO_LOG);
    va_start(arguments, format);
    action->text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    action->level = level;
}

gboolean
discord_gateway_state_next(DiscordGatewayState *self, DiscordGatewayAction *action)
{
    DiscordGatewayAction *first = g_queue_pop_head(&self->todo);
    if (first == NULL)
        return FALSE;
    *action = *first;
    g_free(first);
    return TRUE;
}

DiscordGatewayState *
discord_gateway_state_new(const DiscordSite *site, guint intents, guint32 seed)
{
    DiscordGatewayState *self = g_new0(DiscordGatewayState, 1);
    self->site = site;
    self->intents = intents;
    self->random = g_rand_new_with_seed(seed);
    g_queue_init(&self->todo);
    self->due = G_MAXINT64;
    discord_heart_stop(&self->heart);
    self->remaining = -1;
    self->up_since = -1;
    return self;
}

void
discord_gateway_state_free(DiscordGatewayState *self)
{
    discord_gateway_session_clear(&self->session);
    g_queue_clear_full(&self->todo, action_free);
    g_rand_free(self->random);
    g_free(self->url);
    g_free(self);
}

DiscordGatewayPhase
discord_gateway_state_get_phase(const DiscordGatewayState *self)
{
    return self->phase;
}

gint64
discord_gateway_state_get_due(const DiscordGatewayState *self)
{
    return MIN(self->due, self->heart.next);
}

guint
discord_gateway_state_get_epoch(const DiscordGatewayState *self)
{
    return self->epoch;
}

/* --- what is kept --- */

gboolean
discord_gateway_state_load(DiscordGatewayState *self, const char *text, gsize length, DiscordGatewayClock now)
{
    g_return_val_if_fail(self->phase == DISCORD_GATEWAY_IDLE, FALSE);
    discord_gateway_session_clear(&self->session);
    self->budget.n = 0;
    if (!discord_gateway_saved_read(text, length, self->intents, now, &self->session, &self->budget))
        return FALSE;
    self->handled = self->session.seq;
    self->lost_at = now.mono;
    /* Nobody knows how long the service was away: one try, then a new session. */
    self->resumes = DISCORD_GATEWAY_RESUMES_MAX - 1;
    return TRUE;
}

char *
discord_gateway_state_write(DiscordGatewayState *self, DiscordGatewayClock now)
{
    return discord_gateway_saved_write(&self->session, self->handled, self->intents, &self->budget, now);
}

gboolean
discord_gateway_state_handled(DiscordGatewayState *self, guint epoch, gint64 seq)
{
    if (epoch != self->epoch || seq <= self->handled)
        return FALSE;
    self->handled = seq;
    return TRUE;
}

static void
forget_session(DiscordGatewayState *self)
{
    if (self->session.id == NULL)
        return;
    discord_gateway_session_clear(&self->session);
    self->handled = 0;
    self->epoch++;
    self->resumes = 0;
}

/* --- phases --- */

static void
enter(DiscordGatewayState *self, DiscordGatewayPhase phase, gint64 due)
{
    self->phase = phase;
    self->due = due;
}

static gboolean
is_connected(const DiscordGatewayState *self)
{
    return self->phase >= DISCORD_GATEWAY_GREETING && self->phase <= DISCORD_GATEWAY_UP;
}

static void
wait_for(DiscordGatewayState *self, gint64 ms, DiscordGatewayClock now)
{
    enter(self, DISCORD_GATEWAY_WAITING, now.mono + ms);
}

static void
disconnect(DiscordGatewayState *self)
{
    if (self->open)
        add(self, DISCORD_GATEWAY_DO_CLOSE)->code = DISCORD_GATEWAY_CLOSE_KEEP;
    self->open = FALSE;
    discord_heart_stop(&self->heart);
}

static void
tell_down(DiscordGatewayState *self, const char *why)
{
    if (self->up_since >= 0)
        add(self, DISCORD_GATEWAY_DO_DOWN)->text = g_strdup(why);
    self->up_since = -1;
}

static void
give_up(DiscordGatewayState *self, GError *error)
{
    disconnect(self);
    tell_down(self, error->message);
    enter(self, DISCORD_GATEWAY_FAILED, G_MAXINT64);
    add(self, DISCORD_GATEWAY_DO_FAIL)->error = error;
}

/*
 * The connection is over, whoever ended it. @pause: ms at least; NOW = the server wants us back: at once, if it is the
 * first time in a row.
 *
 * Failures are forgotten only by a session that held: one that comes up and breaks at once, again and again, must not be
 * tried at full speed, and a RESUME that helps for seconds is none (discordeno#3907).
 */
#define NOW (-1)

static void
lose(DiscordGatewayState *self, DiscordGatewayClose class, gint64 pause, const char *why, DiscordGatewayClock now)
{
    if (self->up_since >= 0)
        self->lost_at = now.mono;
    if (self->up_since >= 0 && now.mono - self->up_since >= DISCORD_GATEWAY_STABLE_MS) {
        self->failures = 0;
        self->resumes = 0;
    } else if (is_connected(self) && self->resuming) {
        self->resumes++;
    }
    if (self->phase == DISCORD_GATEWAY_CONNECTING || self->phase == DISCORD_GATEWAY_GREETING) {
        if (self->via == VIA_RESUME_URL)
            g_clear_pointer(&self->session.resume_url, g_free);
        else
            self->ask_again = TRUE;
    }
    disconnect(self);
    tell_down(self, why);
    if (class == DISCORD_GATEWAY_CLOSE_IDENTIFY || class == DISCORD_GATEWAY_CLOSE_LIMITED)
        forget_session(self);
    if (class == DISCORD_GATEWAY_CLOSE_FAULT)
        pause = MAX(pause, FAULT_MS);
    if (class == DISCORD_GATEWAY_CLOSE_LIMITED)
        pause = MAX(pause, LIMITED_MS);
    gint64 backoff = pause == NOW && self->failures == 0 ? 0 : discord_backoff(self->failures, self->random);
    self->failures++;
    wait_for(self, MAX(pause, backoff), now);
    add_log(self, G_LOG_LEVEL_INFO, "gateway lost: %s; next try in %.1f s (%s)", why,
            (double)(self->due - now.mono) / 1000, self->session.id != NULL ? "resume" : "new session");
}

/* --- connecting --- */

static void
connect_to(DiscordGatewayState *self, Via via, char *url, DiscordGatewayClock now)
{
    self->via = via;
    self->resuming = self->session.id != NULL;
    self->open = TRUE;
    discord_heart_stop(&self->heart);
    enter(self, DISCORD_GATEWAY_CONNECTING, now.mono + DISCORD_GATEWAY_CONNECT_MS);
    add(self, DISCORD_GATEWAY_DO_CONNECT)->text = url;
}

static void
connect_main(DiscordGatewayState *self, DiscordGatewayClock now)
{
    GError *error = NULL;
    char *url = discord_gateway_url(self->site, self->url, &error);
    if (url != NULL)
        connect_to(self, VIA_MAIN_URL, url, now);
    else
        give_up(self, eb_error_new(EB_ERROR_CONFIG, "discord.gateway-url",
                                   "Discord's API names a gateway that the bot token is not sent to: %s: see what "
                                   "answers for Discord on this network",
                                   error->message));
    g_clear_error(&error);
}

static void
ask(DiscordGatewayState *self, DiscordGatewayClock now)
{
    enter(self, DISCORD_GATEWAY_ASKING, now.mono + DISCORD_GATEWAY_ASK_MS);
    add(self, DISCORD_GATEWAY_DO_ASK);
}

static void
go_resume(DiscordGatewayState *self, DiscordGatewayClock now)
{
    g_autoptr(GError) error = NULL;
    if (self->session.resume_url != NULL) {
        char *url = discord_gateway_url(self->site, self->session.resume_url, &error);
        if (url != NULL) {
            connect_to(self, VIA_RESUME_URL, url, now);
            return;
        }
        add_log(self, G_LOG_LEVEL_WARNING, "gateway: the URL to resume at is not used: %s", error->message);
        g_clear_pointer(&self->session.resume_url, g_free);
    }
    if (self->url != NULL && !self->ask_again)
        connect_main(self, now);
    else
        ask(self, now);
}

/* TRUE = not before a time that is being waited for now. */
static gboolean
must_wait(DiscordGatewayState *self, DiscordGatewayClock now)
{
    gint64 wait = discord_identify_budget_wait(&self->budget, now.mono);
    if (wait > 0) {
        if (wait > 10000)
            add_log(self, G_LOG_LEVEL_WARNING,
                    "gateway: many new sessions lately: the next one in %" G_GINT64_FORMAT
                    " s, so that Discord does not reset the bot token",
                    wait / 1000);
        wait_for(self, wait, now);
        return TRUE;
    }
    if (self->remaining == 0 && now.mono < self->reset_at) {
        add_log(self, G_LOG_LEVEL_WARNING,
                "gateway: Discord allows no new session for another %" G_GINT64_FORMAT
                " s: waiting; see what else uses this bot",
                (self->reset_at - now.mono) / 1000);
        self->ask_again = TRUE;
        wait_for(self, self->reset_at - now.mono, now);
        return TRUE;
    }
    return FALSE;
}

static gboolean
is_informed(const DiscordGatewayState *self, DiscordGatewayClock now)
{
    return self->url != NULL && !self->ask_again && now.mono - self->asked_at < DISCORD_GATEWAY_INFO_MS &&
           (self->remaining != 0 || now.mono < self->reset_at);
}

static void
go_identify(DiscordGatewayState *self, gboolean informed, DiscordGatewayClock now)
{
    if (must_wait(self, now))
        return;
    if (informed || is_informed(self, now))
        connect_main(self, now);
    else
        ask(self, now);
}

static void
go(DiscordGatewayState *self, DiscordGatewayClock now)
{
    if (self->session.id != NULL &&
        (self->resumes >= DISCORD_GATEWAY_RESUMES_MAX || now.mono - self->lost_at > DISCORD_GATEWAY_SESSION_MS)) {
        add_log(self, G_LOG_LEVEL_INFO, "gateway: the session cannot be resumed: a new one is started");
        forget_session(self);
    }
    if (self->session.id != NULL)
        go_resume(self, now);
    else
        go_identify(self, FALSE, now);
}

void
discord_gateway_state_start(DiscordGatewayState *self, DiscordGatewayClock now)
{
    if (self->phase == DISCORD_GATEWAY_IDLE)
        go(self, now);
}

void
discord_gateway_state_stop(DiscordGatewayState *self, DiscordGatewayClock now)
{
    gboolean started = self->phase != DISCORD_GATEWAY_IDLE;

    if (self->phase == DISCORD_GATEWAY_STOPPED)
        return;
    disconnect(self);
    self->up_since = -1;
    enter(self, DISCORD_GATEWAY_STOPPED, G_MAXINT64);
    /* Before the start nothing is known yet of what the file holds. */
    if (started)
        add(self, DISCORD_GATEWAY_DO_SAVE);
}

/* What was asked for is there, or will not come now. */
static void
go_informed(DiscordGatewayState *self, DiscordGatewayClock now)
{
    if (self->session.id != NULL)
        connect_main(self, now);
    else
        go_identify(self, TRUE, now);
}

void
discord_gateway_state_told(DiscordGatewayState *self, const DiscordGatewayInfo *info, DiscordGatewayClock now)
{
    if (self->phase != DISCORD_GATEWAY_ASKING)
        return;
    g_free(self->url);
    self->url = g_strdup(info->url);
    self->asked_at = now.mono;
    self->ask_again = FALSE;
    self->remaining = info->remaining;
    self->reset_at = now.mono + info->reset_after;
    if (info->shards > 1)
        add_log(self, G_LOG_LEVEL_WARNING,
                "gateway: Discord wants this bot in %" G_GINT64_FORMAT
                " shards, and this service runs one: use a bot of its own",
                info->shards);
    if (info->remaining >= 0 && info->remaining < REMAINING_LOW)
        add_log(self, G_LOG_LEVEL_WARNING,
                "gateway: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " new sessions left, for another %" G_GINT64_FORMAT
                " s",
                info->remaining, info->total, info->reset_after / 1000);
    go_informed(self, now);
}

void
discord_gateway_state_untold(DiscordGatewayState *self, const GError *error, DiscordGatewayClock now)
{
    if (self->phase != DISCORD_GATEWAY_ASKING)
        return;
    if (error != NULL && g_error_matches(error, EB_ERROR, EB_ERROR_UNAUTHENTICATED)) {
        give_up(self, discord_gateway_close_error(4004));
        return;
    }
    /* An API that is away does not mean that the gateway is. What was known of the budget still counts. */
    if (self->url != NULL && (self->remaining != 0 || now.mono < self->reset_at)) {
        self->ask_again = FALSE;
        go_informed(self, now);
        return;
    }
    lose(self, DISCORD_GATEWAY_CLOSE_RESUME, 0, error != NULL ? error->message : "Discord's API does not answer", now);
}

void
discord_gateway_state_connected(DiscordGatewayState *self, DiscordGatewayClock now)
{
    if (self->phase == DISCORD_GATEWAY_CONNECTING)
        enter(self, DISCORD_GATEWAY_GREETING, now.mono + DISCORD_GATEWAY_HELLO_MS);
}

void
discord_gateway_state_closed(DiscordGatewayState *self, guint code, const char *why, DiscordGatewayClock now)
{
    DiscordGatewayClose class = discord_gateway_close_class(code);

    if (!self->open)
        return;
    self->open = FALSE;
    if (class == DISCORD_GATEWAY_CLOSE_GIVE_UP) {
        give_up(self, discord_gateway_close_error(code));
        return;
    }
    if (class == DISCORD_GATEWAY_CLOSE_FAULT || class == DISCORD_GATEWAY_CLOSE_LIMITED)
        add_log(self, G_LOG_LEVEL_WARNING,
                "gateway: Discord closed the connection: %s (%u): this is a fault of "
                "errand-box: please report it",
                discord_gateway_close_name(code), code);
    g_autofree char *text = g_strdup_printf("%s (%u)%s%s", discord_gateway_close_name(code), code,
                                            why != NULL ? ": " : "", why != NULL ? why : "");
    lose(self, class, 0, text, now);
}

/* --- while open --- */

static void
add_beat(DiscordGatewayState *self)
{
    gboolean known = self->session.id != NULL && self->session.seq > 0;
    add(self, DISCORD_GATEWAY_DO_HEARTBEAT)->seq = known ? self->session.seq : -1;
}

static void
on_hello(DiscordGatewayState *self, JsonObject *data, DiscordGatewayClock now)
{
    gint64 interval = eb_json_get_int(data, "heartbeat_interval", 0);
    if (!discord_heart_hello(&self->heart, interval, self->random, now.mono)) {
        lose(self, DISCORD_GATEWAY_CLOSE_RESUME, 0, "a greeting without an interval", now);
        return;
    }
    if (self->phase != DISCORD_GATEWAY_GREETING)
        return;
    if (self->session.id != NULL) {
        DiscordGatewayAction *action = add(self, DISCORD_GATEWAY_DO_RESUME);
        discord_sends_note(&self->heart.sends, now.mono);
        action->text = g_strdup(self->session.id);
        action->seq = self->session.seq;
        enter(self, DISCORD_GATEWAY_RESUMING, now.mono + DISCORD_GATEWAY_RESUMED_MS);
        return;
    }
    /* On record first: a service that dies of what follows must find it there when it is started again. */
    discord_identify_budget_note(&self->budget, now.mono);
    if (self->remaining > 0)
        self->remaining--;
    add(self, DISCORD_GATEWAY_DO_SAVE);
    enter(self, DISCORD_GATEWAY_SAVING, now.mono + DISCORD_GATEWAY_READY_MS);
}

void
discord_gateway_state_saved(DiscordGatewayState *self, DiscordGatewayClock now)
{
    if (self->phase != DISCORD_GATEWAY_SAVING)
        return;
    add(self, DISCORD_GATEWAY_DO_IDENTIFY);
    discord_sends_note(&self->heart.sends, now.mono);
    enter(self, DISCORD_GATEWAY_IDENTIFYING, now.mono + DISCORD_GATEWAY_READY_MS);
}

static void
come_up(DiscordGatewayState *self, const char *how, DiscordGatewayClock now)
{
    add_log(self, G_LOG_LEVEL_INFO, "gateway connected: %s", how);
    self->up_since = now.mono;
    enter(self, DISCORD_GATEWAY_UP, G_MAXINT64);
}

static DiscordGatewayVerdict
on_ready(DiscordGatewayState *self, JsonObject *data, const DiscordGatewayFrame *frame, DiscordGatewayClock now)
{
    const char *id = eb_json_get_string(data, "session_id");
    const char *url = eb_json_get_string(data, "resume_gateway_url");

    if (self->phase < DISCORD_GATEWAY_IDENTIFYING)
        return DISCORD_GATEWAY_NO_EVENT;
    if (!discord_gateway_session_is_sound(id)) {
        lose(self, DISCORD_GATEWAY_CLOSE_IDENTIFY, 0, "READY without a session", now);
        return DISCORD_GATEWAY_NO_EVENT;
    }
    forget_session(self);
    self->epoch++;
    self->handled = 0;
    self->session.id = g_strdup(id);
    self->session.resume_url = url != NULL && strlen(url) <= DISCORD_GATEWAY_URL_MAX ? g_strdup(url) : NULL;
    self->session.seq = MAX(frame->seq, 0);
    self->resuming = FALSE;
    come_up(self, "new session", now);
    return DISCORD_GATEWAY_READY;
}

static DiscordGatewayVerdict
on_dispatch(DiscordGatewayState *self, const char *text, const DiscordGatewayFrame *frame, DiscordGatewayClock now)
{
    if (g_str_equal(frame->type, "READY")) {
        g_autoptr(JsonNode) data = discord_gateway_frame_parse(text, frame);
        return on_ready(self, eb_json_node_object(data), frame, now);
    }
    if (self->phase != DISCORD_GATEWAY_RESUMING && self->phase != DISCORD_GATEWAY_UP)
        return DISCORD_GATEWAY_NO_EVENT;
    self->session.seq = MAX(self->session.seq, frame->seq);
    if (g_str_equal(frame->type, "RESUMED")) {
        if (self->phase == DISCORD_GATEWAY_UP)
            return DISCORD_GATEWAY_NO_EVENT;
        come_up(self, "resumed", now);
        return DISCORD_GATEWAY_RESUMED;
    }
    if (self->phase == DISCORD_GATEWAY_RESUMING)
        self->due = now.mono + DISCORD_GATEWAY_RESUMED_MS;
    return DISCORD_GATEWAY_EVENT;
}

static void
on_invalid(DiscordGatewayState *self, gboolean resumable, DiscordGatewayClock now)
{
    gint64 pause = g_rand_int_range(self->random, INVALID_MIN_MS, INVALID_MAX_MS + 1);
    if (resumable && self->session.id != NULL)
        lose(self, DISCORD_GATEWAY_CLOSE_RESUME, pause, "invalid session, to be resumed", now);
    else
        lose(self, DISCORD_GATEWAY_CLOSE_IDENTIFY, pause, "invalid session", now);
}

DiscordGatewayVerdict
discord_gateway_state_receive(DiscordGatewayState *self, const char *text, gsize length, DiscordGatewayFrame *frame,
                              DiscordGatewayClock now)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) data = NULL;

    *frame = (DiscordGatewayFrame){.op = -1, .seq = -1};
    if (!is_connected(self))
        return DISCORD_GATEWAY_NO_EVENT;
    if (!discord_gateway_frame_read(text, length, frame, &error)) {
        g_autofree char *why = g_strdup_printf("a payload that cannot be read: %s", error->message);
        lose(self, DISCORD_GATEWAY_CLOSE_RESUME, FAULT_MS, why, now);
        return DISCORD_GATEWAY_NO_EVENT;
    }
    switch (frame->op) {
    case 0:
        return on_dispatch(self, text, frame, now);
    case 1:
        if (discord_heart_asked(&self->heart, now.mono))
            add_beat(self);
        break;
    case 7:
        lose(self, DISCORD_GATEWAY_CLOSE_RESUME, NOW, "Discord asks to reconnect", now);
        break;
    case 9:
        data = discord_gateway_frame_parse(text, frame);
        on_invalid(self, data != NULL && JSON_NODE_HOLDS_VALUE(data) && json_node_get_boolean(data), now);
        break;
    case 10:
        data = discord_gateway_frame_parse(text, frame);
        on_hello(self, eb_json_node_object(data), now);
        break;
    case 11:
        discord_heart_ack(&self->heart);
        break;
    default:
        break;
    }
    return DISCORD_GATEWAY_NO_EVENT;
}

void
discord_gateway_state_full(DiscordGatewayState *self, DiscordGatewayClock now)
{
    if (!is_connected(self))
        return;
    const char *why = "more events than can be handled: the rest comes later";
    if (self->up_since >= 0)
        self->lost_at = now.mono;
    disconnect(self);
    tell_down(self, why);
    self->full = TRUE;
    enter(self, DISCORD_GATEWAY_WAITING, G_MAXINT64);
    add_log(self, G_LOG_LEVEL_WARNING, "gateway: %s", why);
}

void
discord_gateway_state_drained(DiscordGatewayState *self, DiscordGatewayClock now)
{
    if (self->full && self->phase == DISCORD_GATEWAY_WAITING)
        self->due = now.mono;
    self->full = FALSE;
}

static void
on_due(DiscordGatewayState *self, DiscordGatewayClock now)
{
    switch (self->phase) {
    case DISCORD_GATEWAY_WAITING:
        go(self, now);
        break;
    case DISCORD_GATEWAY_ASKING:
        discord_gateway_state_untold(self, NULL, now);
        break;
    case DISCORD_GATEWAY_CONNECTING:
        lose(self, DISCORD_GATEWAY_CLOSE_RESUME, 0, "the gateway cannot be connected to in time", now);
        break;
    case DISCORD_GATEWAY_GREETING:
        lose(self, DISCORD_GATEWAY_CLOSE_RESUME, 0, "no greeting in time", now);
        break;
    case DISCORD_GATEWAY_SAVING:
        discord_gateway_state_saved(self, now);
        break;
    case DISCORD_GATEWAY_IDENTIFYING:
        lose(self, DISCORD_GATEWAY_CLOSE_IDENTIFY, 0, "no READY in time", now);
        break;
    case DISCORD_GATEWAY_RESUMING:
        lose(self, DISCORD_GATEWAY_CLOSE_RESUME, 0, "no RESUMED in time", now);
        break;
    default:
        self->due = G_MAXINT64;
        break;
    }
}

void
discord_gateway_state_tick(DiscordGatewayState *self, DiscordGatewayClock now)
{
    DiscordHeartVerdict heart = discord_heart_tick(&self->heart, now.mono);
    if (heart == DISCORD_HEART_BEAT)
        add_beat(self);
    if (heart == DISCORD_HEART_DEAD)
        lose(self, DISCORD_GATEWAY_CLOSE_RESUME, NOW, "no answer to a heartbeat", now);
    else if (now.mono >= self->due)
        on_due(self, now);
}
