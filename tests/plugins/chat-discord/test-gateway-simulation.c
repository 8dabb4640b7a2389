/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "gateway-rig.h"

/*
 * Days with a gateway that misbehaves at random, in no time. Whatever comes in whatever order: no crash, pauses within
 * the cap, IDENTIFY within Discord's budget, at most 120 sends in a minute, RESUME only with a session, and when the
 * faults end the connection is up again.
 */

#define DAY_MS ((gint64)24 * 3600 * 1000)

typedef struct {
    guint broken;  /* of 1000: the connection breaks now */
    guint refused; /* of 1000: a try to connect fails */
    guint silent;  /* of 1000: a connection says nothing */
    guint odd;     /* of 1000: any payload at any time */
    guint forgets; /* of 1000: a RESUME is answered with op 9 */
    guint final;   /* of 1000: ends with one of all codes but those that give up */
} Weather;

typedef struct {
    Rig *rig;
    GRand *random;
    Weather weather;
    guint64 sends[DISCORD_SENDS_MAX]; /* when, of this connection: a ring */
    guint n_sends;
    gint64 last_identify;
    gint64 identifies[1024];
    guint n_identifies;
    gint64 seq;
    gboolean answered; /* the last heartbeat was */
    gboolean silent;
    guint connections;
} Sim;

static gboolean
chance(Sim *sim, guint of_1000)
{
    return (guint)g_rand_int_range(sim->random, 0, 1000) < of_1000;
}

static void
note_send(Sim *sim)
{
    if (sim->n_sends >= DISCORD_SENDS_MAX)
        g_assert_cmpint((gint64)(sim->rig->now.mono - (gint64)sim->sends[sim->n_sends % DISCORD_SENDS_MAX]), >=, 60000);
    sim->sends[sim->n_sends++ % DISCORD_SENDS_MAX] = (guint64)sim->rig->now.mono;
}

static void
note_identify(Sim *sim)
{
    gint64 now = sim->rig->now.mono;
    if (sim->n_identifies > 0)
        g_assert_cmpint(now - sim->last_identify, >=, 5000);
    sim->last_identify = now;
    /* Never more than 250 within any 24 hours. */
    if (sim->n_identifies >= DISCORD_IDENTIFY_KEPT)
        g_assert_cmpint(now - sim->identifies[(sim->n_identifies - DISCORD_IDENTIFY_KEPT) % 1024], >=, DAY_MS);
    sim->identifies[sim->n_identifies++ % 1024] = now;
}

static void
event(Sim *sim, const char *type, const char *data)
{
    g_autofree char *text =
        g_strdup_printf("{\"op\":0,\"s\":%" G_GINT64_FORMAT ",\"t\":\"%s\",\"d\":%s}", ++sim->seq, type, data);
    rig_receive(sim->rig, text);
}

static void
odd_payload(Sim *sim)
{
    static const char *const payloads[] = {
        "{\"op\":7}",
        "{\"op\":7,\"d\":null}",
        "{\"op\":9,\"d\":true}",
        "{\"op\":9,\"d\":false}",
        "{\"op\":9}",
        "{\"op\":1}",
        "{\"op\":11}",
        "{\"op\":10,\"d\":{\"heartbeat_interval\":41250}}",
        "{\"op\":10,\"d\":{\"heartbeat_interval\":1}}",
        "{\"op\":10,\"d\":{\"heartbeat_interval\":-5}}",
        "{\"op\":10}",
        "{\"op\":0,\"t\":\"READY\",\"s\":1,\"d\":{\"session_id\":\"odd\",\"resume_gateway_url\":\"" RIG_RESUME "\"}}",
        "{\"op\":0,\"t\":\"READY\",\"d\":{}}",
        "{\"op\":0,\"t\":\"RESUMED\"}",
        "{\"op\":0,\"t\":\"MESSAGE_CREATE\",\"s\":9007199254740992,\"d\":{}}",
        "{\"op\":0,\"t\":\"MESSAGE_CREATE\",\"s\":-1,\"d\":[]}",
        "garbage",
        "",
        "{\"op\":77}",
    };
    rig_receive(sim->rig, payloads[g_rand_int_range(sim->random, 0, G_N_ELEMENTS(payloads))]);
}

static void
break_connection(Sim *sim)
{
    static const guint codes[] = {0,    1000, 1001, 1005, 1006, 1011, 1012, 4000,
                                  4001, 4002, 4003, 4005, 4007, 4008, 4009, 4999};
    guint code = chance(sim, sim->weather.final) ? codes[g_rand_int_range(sim->random, 0, G_N_ELEMENTS(codes))] : 1006;
    discord_gateway_state_closed(sim->rig->state, code, NULL, sim->rig->now);
    rig_take(sim->rig);
}

static void
react(Sim *sim, const char *what)
{
    Rig *rig = sim->rig;

    if (g_str_equal(what, "ask")) {
        g_autoptr(GError) error = eb_error_new(EB_ERROR_UNAVAILABLE, NULL, "away");
        if (chance(sim, sim->weather.refused))
            discord_gateway_state_untold(rig->state, error, rig->now);
        else
            rig_info(rig, 1000 - (gint64)sim->n_identifies % 1000, 1000);
    } else if (g_str_equal(what, "connect")) {
        sim->connections++;
        sim->n_sends = 0;
        sim->silent = chance(sim, sim->weather.silent);
        if (chance(sim, sim->weather.refused)) {
            discord_gateway_state_closed(rig->state, 0, "refused", rig->now);
        } else {
            discord_gateway_state_connected(rig->state, rig->now);
            if (!sim->silent)
                rig_receive(rig, "{\"op\":10,\"d\":{\"heartbeat_interval\":41250}}");
        }
    } else if (g_str_equal(what, "save")) {
        g_autofree char *text = discord_gateway_state_write(rig->state, rig->now);
        g_assert_cmpuint(strlen(text), <, DISCORD_GATEWAY_SAVED_MAX);
        discord_gateway_state_saved(rig->state, rig->now);
    } else if (g_str_equal(what, "identify")) {
        note_send(sim);
        note_identify(sim);
        sim->seq = 0;
        if (!sim->silent)
            event(sim, "READY", "{\"session_id\":\"s\",\"resume_gateway_url\":\"" RIG_RESUME "\"}");
    } else if (g_str_has_prefix(what, "resume-")) {
        note_send(sim);
        if (chance(sim, sim->weather.forgets))
            rig_receive(rig, chance(sim, 500) ? "{\"op\":9,\"d\":false}" : "{\"op\":9,\"d\":true}");
        else if (!sim->silent)
            event(sim, "RESUMED", "{}");
    } else if (g_str_has_prefix(what, "beat")) {
        note_send(sim);
        if (!sim->silent)
            rig_receive(rig, "{\"op\":11}");
    } else {
        g_assert_true(g_str_equal(what, "close-4000") || g_str_equal(what, "down"));
    }
    rig_take(rig);
}

/* One step: everything wanted is reacted to, then time goes on to what is due or to the next misfortune. */
static void
step(Sim *sim)
{
    Rig *rig = sim->rig;
    DiscordGatewayPhase phase;

    for (guint i = 0; rig->done->len > 0; i++) {
        g_autofree char *all = g_strdup(g_strchomp(rig->done->str));
        g_auto(GStrv) whats = g_strsplit(all, " ", 0);
        g_string_truncate(rig->done, 0);
        for (char **what = whats; *what != NULL; what++)
            react(sim, *what);
        g_assert_cmpuint(i, <, 50);
    }
    phase = discord_gateway_state_get_phase(rig->state);
    g_assert_cmpint(phase, !=, DISCORD_GATEWAY_FAILED);
    gint64 due = discord_gateway_state_get_due(rig->state);
    g_assert_cmpint(due, <, G_MAXINT64);
    if (phase == DISCORD_GATEWAY_WAITING)
        g_assert_cmpint(due - rig->now.mono, <=, DAY_MS);
    if (phase >= DISCORD_GATEWAY_GREETING && phase <= DISCORD_GATEWAY_UP) {
        gint64 left = MAX(due - rig->now.mono, 0);
        if (chance(sim, sim->weather.broken)) {
            rig_pass(rig, g_rand_int_range(sim->random, 0, (gint32)left + 1));
            break_connection(sim);
            return;
        }
        if (chance(sim, sim->weather.odd)) {
            rig_pass(rig, g_rand_int_range(sim->random, 0, (gint32)left + 1));
            odd_payload(sim);
            return;
        }
        if (phase == DISCORD_GATEWAY_UP && chance(sim, 300))
            event(sim, "MESSAGE_CREATE", "{}");
    }
    rig_wait(rig);
}

static void
run(Weather weather, guint32 seed, gint64 ms)
{
    g_autoptr(Rig) rig = rig_new(seed);
    Sim sim = {.rig = rig, .random = g_rand_new_with_seed(seed), .weather = weather};
    gint64 end = rig->now.mono + ms;
    guint steps = 0;

    discord_gateway_state_start(rig->state, rig->now);
    rig_take(rig);
    while (rig->now.mono < end) {
        step(&sim);
        /* A loop at full speed would take millions: a pause is 60 s in the mean, a beat 41 s. */
        g_assert_cmpuint(++steps, <, 200000);
    }
    /* Better weather: up again within a day's budget, and it stays. */
    sim.weather = (Weather){0};
    end = rig->now.mono + DAY_MS + 3600 * 1000;
    while (rig->now.mono < end)
        step(&sim);
    g_assert_cmpint(discord_gateway_state_get_phase(rig->state), ==, DISCORD_GATEWAY_UP);
    g_test_message("seed %u: %u connections, %u IDENTIFYs, %u steps", seed, sim.connections, sim.n_identifies, steps);
    g_rand_free(sim.random);
}

static void
test_storm(void)
{
    static const Weather weathers[] = {
        {100, 300, 200, 100, 300, 500}, {1000, 0, 0, 0, 0, 0},     {0, 1000, 0, 0, 0, 0},
        {0, 0, 1000, 0, 0, 0},          {0, 0, 0, 1000, 0, 0},     {1000, 0, 0, 0, 1000, 1000},
        {500, 0, 0, 500, 1000, 1000},   {10, 50, 10, 5, 100, 300}, {900, 500, 100, 500, 500, 0},
        {1000, 0, 0, 0, 1000, 0},
    };
    guint32 base = (guint32)g_test_rand_int();

    for (gsize i = 0; i < G_N_ELEMENTS(weathers); i++) {
        for (guint32 k = 0; k < 3; k++)
            run(weathers[i], base + (guint32)i * 10 + k, DAY_MS);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/gateway-simulation/storm", test_storm);
    return g_test_run();
}
