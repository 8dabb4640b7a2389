/* SPDX-License-Identifier: MIT */
#pragma once

#include "ds-json.h"

#include <libsoup/soup.h>
#include <stdio.h>

G_BEGIN_DECLS

/* What is there at the start; docs in README.md. */
#define DS_GUILD "100000000000000001"
#define DS_APPLICATION "100000000000000002" /* also the bot's user */
#define DS_CHANNEL "100000000000000010"
#define DS_OTHER_CHANNEL "100000000000000011"
#define DS_BOT_ROLE "100000000000000020"
#define DS_ALICE "100000000000000101" /* owns the guild */
#define DS_BOB "100000000000000102"
#define DS_CAROL "100000000000000103"
#define DS_OTHER_BOT "100000000000000104"

#define DS_EPOCH_MS G_GINT64_CONSTANT(1420070400000)
#define DS_LOG_MAX 50000

/* Permission bits. */
#define DS_ADD_REACTIONS (G_GUINT64_CONSTANT(1) << 6)
#define DS_ADMINISTRATOR (G_GUINT64_CONSTANT(1) << 3)
#define DS_MANAGE_CHANNELS (G_GUINT64_CONSTANT(1) << 4)
#define DS_VIEW_CHANNEL (G_GUINT64_CONSTANT(1) << 10)
#define DS_SEND_MESSAGES (G_GUINT64_CONSTANT(1) << 11)
#define DS_MANAGE_MESSAGES (G_GUINT64_CONSTANT(1) << 13)
#define DS_ATTACH_FILES (G_GUINT64_CONSTANT(1) << 15)
#define DS_READ_HISTORY (G_GUINT64_CONSTANT(1) << 16)
#define DS_MENTION_EVERYONE (G_GUINT64_CONSTANT(1) << 17)
#define DS_MANAGE_THREADS (G_GUINT64_CONSTANT(1) << 34)
#define DS_CREATE_PUBLIC_THREADS (G_GUINT64_CONSTANT(1) << 35)
#define DS_SEND_IN_THREADS (G_GUINT64_CONSTANT(1) << 38)
#define DS_BOT_NEEDS G_GUINT64_CONSTANT(326417615936)

/* Intents, and the application's flags that allow the privileged one. */
#define DS_INTENT_GUILDS (1 << 0)
#define DS_INTENT_MESSAGES (1 << 9)
#define DS_INTENT_REACTIONS (1 << 10)
#define DS_INTENT_TYPING (1 << 11)
#define DS_INTENT_CONTENT (1 << 15)
#define DS_INTENTS_KNOWN 0x337ffff
#define DS_FLAG_CONTENT ((1 << 18) | (1 << 19))

typedef struct _DsWorld DsWorld;
typedef struct _DsChannel DsChannel;
typedef struct _DsMessage DsMessage;
typedef struct _DsGateway DsGateway;
typedef struct _DsBuckets DsBuckets;

typedef struct {
    char *emoji;
    GPtrArray *users; /* (element-type utf8) */
} DsReaction;

struct _DsMessage {
    char *id;
    DsChannel *channel; /* (unowned) */
    JsonObject *json;
    char *author;
    GPtrArray *history;   /* (element-type utf8): every content it had, oldest first */
    GPtrArray *reactions; /* (element-type DsReaction) */
    gboolean deleted;
    gboolean ephemeral; /* only one user sees it: not in the channel's history */
    gint64 nonce_us;
    char *nonce; /* (nullable) */
};

struct _DsChannel {
    char *id;
    JsonObject *json;
    GPtrArray *messages; /* (element-type DsMessage): by id, deleted ones too */
    gboolean deleted;
    guint typing;    /* indicators asked for */
    GArray *renames; /* (element-type gint64): when, us */
};

typedef struct {
    char *id;
    char *token;
    char *user;
    char *channel;
    char *name; /* the command's, or the button's custom_id */
    int type;
    gint64 made_us;
    gint64 acked_us; /* 0: not yet */
    int callback;    /* type of the first answer */
    gboolean ephemeral;
    gboolean deferred; /* "thinking" is shown, the answer is still to come */
    DsMessage *original;
    DsMessage *source;  /* (nullable): the message with the button */
    GPtrArray *answers; /* (element-type DsMessage), the original one included */
} DsInteraction;

typedef struct {
    GBytes *bytes;
    char *name;
    char *type;
    gint64 expires_s;
} DsFile;

/** DsFault: what the next matching requests get instead of an answer. */
typedef struct {
    char *method;   /* (nullable): any */
    GRegex *path;   /* (nullable): any */
    char *kind;     /* 429-user 429-global 429-shared 429-html 429-empty 500 502 reset half delay lost hang */
    guint count;    /* how many are left */
    guint skip;     /* matching ones that pass before */
    double seconds; /* retry_after, or how long it is delayed */
} DsFault;

struct _DsWorld {
    char *token;
    char *origin; /* http://127.0.0.1:PORT */
    FILE *record; /* (owned) (nullable): all that bots sent */
    guint64 last_id;
    gint64 application_flags;
    char *interactions_url; /* (nullable) */
    JsonObject *guild;
    gboolean bot_in_guild;
    GPtrArray *roles;    /* (element-type JsonObject) */
    GHashTable *members; /* id -> JsonObject */
    GPtrArray *channels; /* (element-type DsChannel): threads too */
    GHashTable *files;   /* attachment id -> DsFile */
    JsonArray *guild_commands;
    JsonArray *global_commands;
    guint command_creates;
    GPtrArray *interactions; /* (element-type DsInteraction) */
    GPtrArray *faults;       /* (element-type DsFault) */
    GPtrArray *log[5];       /* DsLog -> (element-type JsonObject) */
    GHashTable *counts;      /* name -> guint */
    DsGateway *gateway;
    DsBuckets *buckets;
    double rename_window_s;
    gboolean token_revoked;
    gboolean silent;       /* a black hole: takes connections and requests, answers nothing */
    guint held;            /* requests that got no answer because of it */
    GPtrArray *sources;    /* (element-type GSource): what is still to happen */
    GPtrArray *unanswered; /* (element-type DsRequest): never will be */
    void (*changed)(gpointer user_data);
    void (*refuse)(gpointer user_data, double seconds); /* connections, for so long */
    void (*speak)(gpointer user_data);                  /* after silence */
    gpointer hooks_data;
};

typedef enum { DS_LOG_REQUESTS, DS_LOG_VIOLATIONS, DS_LOG_PINGS, DS_LOG_REFUSALS, DS_LOG_GATEWAY } DsLog;

DsWorld *ds_world_new(const char *token);
void ds_world_free(DsWorld *self);
/** ds_world_next_id: (transfer full): a snowflake of now, greater than all before. */
char *ds_world_next_id(DsWorld *self);
void ds_world_changed(DsWorld *self);
/** ds_world_later: @free_data is called in any case, also when the world ends before. */
void ds_world_later(DsWorld *self, guint ms, GSourceFunc callback, gpointer data, GDestroyNotify free_data);
void ds_world_count(DsWorld *self, const char *name);
guint ds_world_get_count(DsWorld *self, const char *name);
/** ds_world_log: @row: (transfer full) */
void ds_world_log(DsWorld *self, DsLog log, JsonObject *row);
void ds_world_violation(DsWorld *self, const char *rule, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* --- people, roles --- */
JsonObject *ds_world_add_user(DsWorld *self, const char *id, const char *name, gboolean bot);
JsonObject *ds_world_user(DsWorld *self, const char *id);
JsonObject *ds_world_role(DsWorld *self, const char *id);
JsonObject *ds_world_add_role(DsWorld *self, const char *id, const char *name, guint64 permissions);
/** ds_world_member_json: (transfer full): without the user, as messages carry it. */
JsonObject *ds_world_member_json(DsWorld *self, const char *user_id, gboolean with_user);
/** ds_world_permissions: of @user_id in @channel, for a thread in its parent. */
guint64 ds_world_permissions(DsWorld *self, const char *user_id, DsChannel *channel);

/* --- channels --- */
DsChannel *ds_world_add_channel(DsWorld *self, const char *id, const char *name);
DsChannel *ds_world_channel(DsWorld *self, const char *id);
gboolean ds_channel_is_thread(DsChannel *self);
/** ds_channel_json: (transfer full) */
JsonObject *ds_channel_json(DsWorld *world, DsChannel *self);
JsonObject *ds_channel_metadata(DsChannel *self);
gboolean ds_channel_flag(DsChannel *self, const char *name);
/** ds_world_add_thread: @from: (nullable): the message that it grows from. */
DsChannel *ds_world_add_thread(DsWorld *self, DsChannel *parent, DsMessage *from, const char *name, const char *owner,
                               int auto_archive, int type);
/** ds_world_change_thread: @archived, @locked: -1 as they are */
void ds_world_change_thread(DsWorld *self, DsChannel *thread, int archived, int locked, const char *name);
void ds_world_remove_channel(DsWorld *self, DsChannel *channel);
/** ds_world_tell_channel: tells the gateway of a change. */
void ds_world_tell_channel(DsWorld *self, DsChannel *channel, const char *event);

/* --- messages --- */
/** ds_world_new_message: not yet in its channel. @fields: (transfer full) (nullable): laid over the defaults. */
DsMessage *ds_world_new_message(DsWorld *self, DsChannel *channel, const char *author, const char *content,
                                JsonObject *fields);
/** ds_world_say: puts it into its channel and tells the gateway. */
void ds_world_say(DsWorld *self, DsMessage *message);
void ds_world_edited(DsWorld *self, DsMessage *message, gboolean by_author);
void ds_world_delete_message(DsWorld *self, DsMessage *message);
DsMessage *ds_channel_message(DsChannel *self, const char *id);
/** ds_message_json: (transfer full): as REST gives it; @for_gateway: with guild_id and member. */
JsonObject *ds_message_json(DsWorld *world, DsMessage *self, gboolean for_gateway);
/** ds_world_react: FALSE: over 20 different ones. */
gboolean ds_world_react(DsWorld *self, DsMessage *message, const char *user, const char *emoji, gboolean on);
/** ds_world_renew_files: new addresses for what has expired: reading a message gives such. */
void ds_world_renew_files(DsWorld *self, DsChannel *channel, JsonObject *message);
/** ds_world_add_file: (transfer full): an attachment object. */
JsonObject *ds_world_add_file(DsWorld *self, DsChannel *channel, const char *name, const char *type, GBytes *bytes,
                              gint64 claimed_size);
/** ds_now_ms, ds_iso: the wall clock. */
gint64 ds_now_ms(void);
char *ds_iso(gint64 unix_ms);

/* --- interactions --- */
DsInteraction *ds_world_interact(DsWorld *self, int type, const char *user, DsChannel *channel, DsMessage *source,
                                 const char *name, JsonObject *data);
DsInteraction *ds_world_interaction(DsWorld *self, const char *id_or_token);

/* --- ds-mentions.c --- */
/** ds_world_mentions: fills mentions and records who would be pinged. @allowed: (nullable); @users_only: without it only
 * users are parsed. */
void ds_world_mentions(DsWorld *self, DsMessage *message, JsonObject *allowed, gboolean users_only, gboolean edit);

G_END_DECLS
