/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/broker/eb-broker-config.h"
#include "core/broker/eb-broker-proto.h"
#include "core/broker/eb-broker-report.h"
#include "eb-test.h"

static guint8 buffer[EB_BROKER_MSG_MAX];

static void
test_round_trip(void)
{
    EbBrokerWriter writer;
    EbBrokerMsg msg;
    g_autofree char *text = NULL;
    gsize length, n;

    eb_broker_writer_begin(&writer, buffer, sizeof buffer, EB_BROKER_MSG_KEY);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_NAME, "anthropic");
    eb_broker_writer_string(&writer, EB_BROKER_TAG_KIND, NULL);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_SERIAL, G_GUINT64_CONSTANT(0xfedcba9876543210));
    eb_broker_writer_bytes(&writer, EB_BROKER_TAG_SECRET, "a\0b", 3);
    length = eb_broker_writer_end(&writer);
    g_assert_true(eb_broker_msg_decode(buffer, length, &msg, NULL));
    g_assert_cmpint(msg.type, ==, EB_BROKER_MSG_KEY);
    g_assert_cmpuint(msg.n_fields, ==, 3);
    text = eb_broker_msg_string(&msg, EB_BROKER_TAG_NAME);
    g_assert_cmpstr(text, ==, "anthropic");
    g_assert_null(eb_broker_msg_string(&msg, EB_BROKER_TAG_KIND));
    /* Control bytes make no text. */
    g_assert_null(eb_broker_msg_string(&msg, EB_BROKER_TAG_SECRET));
    g_assert_cmpuint(eb_broker_msg_number(&msg, EB_BROKER_TAG_SERIAL, 0), ==, G_GUINT64_CONSTANT(0xfedcba9876543210));
    g_assert_cmpuint(eb_broker_msg_number(&msg, EB_BROKER_TAG_NAME, 7), ==, 7);
    g_assert_cmpmem(eb_broker_msg_bytes(&msg, EB_BROKER_TAG_SECRET, &n), n, "a\0b", 3);
}

/* What a broker says is shown on terminals and in chats. */
static void
test_unshown(void)
{
    static const char *const texts[] = {
        "a\x1b[2Jb", /* escape */
        "a\xc2\x9b"
        "2Jb", /* the same in one character */
        "a\xe2\x80\xae"
        "b", /* right to left */
        "a\xe2\x80\x8b"
        "b", /* no width */
        "a\xe2\x80\xa8"
        "b", /* line separator */
        "a\nb",
        "a\x7f"
        "b",
        "a\xff"
        "b",
    };
    EbBrokerWriter writer;
    EbBrokerMsg msg;

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        eb_broker_writer_begin(&writer, buffer, sizeof buffer, EB_BROKER_MSG_DENIED);
        eb_broker_writer_string(&writer, EB_BROKER_TAG_HOST, texts[i]);
        eb_broker_writer_string(&writer, EB_BROKER_TAG_TEXT, "k\xc3\xb6ln");
        g_assert_true(eb_broker_msg_decode(buffer, eb_broker_writer_end(&writer), &msg, NULL));
        g_assert_null(eb_broker_msg_string(&msg, EB_BROKER_TAG_HOST));
        g_autofree char *good = eb_broker_msg_string(&msg, EB_BROKER_TAG_TEXT);
        g_assert_cmpstr(good, ==, "k\xc3\xb6ln");
    }
}

static void
test_malformed(void)
{
    EbBrokerWriter writer;
    EbBrokerMsg msg;
    gsize length;

    eb_broker_writer_begin(&writer, buffer, sizeof buffer, EB_BROKER_MSG_ALLOW);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_HOST, "example.com");
    length = eb_broker_writer_end(&writer);
    for (gsize cut = 0; cut < length; cut++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(eb_broker_msg_decode(buffer, cut, &msg, &error));
        eb_test_assert_error(error, EB_ERROR_PROTOCOL, "broker.message", NULL);
    }
    /* A field that says it is longer than the message. */
    buffer[9] = 0xff;
    g_assert_false(eb_broker_msg_decode(buffer, length, &msg, NULL));
}

static void
test_bounds(void)
{
    g_autofree char *secret = g_strnfill(EB_SECRET_MAX_BYTES, 's');
    guint8 small[32];
    EbBrokerWriter writer;
    EbBrokerMsg msg;

    /* The longest secret fits with the longest name there is. */
    eb_broker_writer_begin(&writer, buffer, sizeof buffer, EB_BROKER_MSG_KEY);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_NAME, "a-name-of-a-provider");
    eb_broker_writer_bytes(&writer, EB_BROKER_TAG_SECRET, secret, EB_SECRET_MAX_BYTES);
    g_assert_cmpuint(eb_broker_writer_end(&writer), >, EB_SECRET_MAX_BYTES);
    eb_broker_writer_bytes(&writer, EB_BROKER_TAG_SECRET, secret, EB_SECRET_MAX_BYTES);
    g_assert_cmpuint(eb_broker_writer_end(&writer), ==, 0);
    eb_broker_writer_begin(&writer, small, sizeof small, EB_BROKER_MSG_KEY);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_NAME, "longer than what is left of it");
    g_assert_cmpuint(eb_broker_writer_end(&writer), ==, 0);
    eb_broker_writer_begin(&writer, buffer, sizeof buffer, EB_BROKER_MSG_ALLOW);
    for (guint i = 0; i <= EB_BROKER_MSG_MAX_FIELDS; i++)
        eb_broker_writer_string(&writer, EB_BROKER_TAG_HOST, "x");
    g_assert_false(eb_broker_msg_decode(buffer, eb_broker_writer_end(&writer), &msg, NULL));
}

static gboolean
take(EbBrokerStage *stage, EbBrokerWriter *writer, EbBrokerConfig **config, GError **error)
{
    EbBrokerMsg msg;
    guint64 serial;

    g_assert_true(eb_broker_msg_decode(writer->buffer, eb_broker_writer_end(writer), &msg, NULL));
    return eb_broker_stage_take(stage, &msg, config, &serial, error);
}

static gboolean
begin(EbBrokerStage *stage, EbBrokerConfig **config)
{
    static const guint8 PORTS[] = {0xbb, 0x01};
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, buffer, sizeof buffer, EB_BROKER_MSG_BEGIN);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_SERIAL, 5);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_SESSION, "s");
    eb_broker_writer_number(&writer, EB_BROKER_TAG_FLAGS, EB_BROKER_FLAG_PROXY);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_RELAY_PORT, 47129);
    eb_broker_writer_bytes(&writer, EB_BROKER_TAG_PORTS, PORTS, sizeof PORTS);
    return take(stage, &writer, config, NULL);
}

static gboolean
send_text(EbBrokerStage *stage, EbBrokerMsgType type, EbBrokerConfig **config, GError **error, ...)
{
    EbBrokerWriter writer;
    va_list arguments;
    int tag;

    eb_broker_writer_begin(&writer, buffer, sizeof buffer, type);
    va_start(arguments, error);
    while ((tag = va_arg(arguments, int)) != 0)
        eb_broker_writer_string(&writer, (EbBrokerTag)tag, va_arg(arguments, const char *));
    va_end(arguments);
    return take(stage, &writer, config, error);
}

static void
test_stage(void)
{
    g_autoptr(EbBrokerStage) stage = eb_broker_stage_new();
    g_autoptr(EbBrokerConfig) config = NULL;
    g_autoptr(GError) error = NULL;
    EbProvider *provider;

    g_assert_true(begin(stage, &config));
    g_assert_true(send_text(stage, EB_BROKER_MSG_ALLOW, &config, NULL, EB_BROKER_TAG_HOST, "a.test", EB_BROKER_TAG_HOST,
                            "*.b.test", 0));
    g_assert_true(send_text(stage, EB_BROKER_MSG_PROVIDER, &config, NULL, EB_BROKER_TAG_NAME, "p", EB_BROKER_TAG_KIND,
                            "gemini", EB_BROKER_TAG_URL, "https://p.test/v1", 0));
    g_assert_true(send_text(stage, EB_BROKER_MSG_KEY, &config, NULL, EB_BROKER_TAG_NAME, "p", EB_BROKER_TAG_SECRET,
                            "the-key-itself", 0));
    /* The bytes in the message are wiped as the secret is taken. */
    g_assert_null(memmem(buffer, sizeof buffer, "the-key-itself", 14));
    g_assert_true(send_text(stage, EB_BROKER_MSG_NONCE, &config, NULL, EB_BROKER_TAG_NAME, "p", EB_BROKER_TAG_SECRET,
                            "the-nonce", 0));
    g_assert_null(config);
    g_assert_true(send_text(stage, EB_BROKER_MSG_COMMIT, &config, NULL, 0));
    g_assert_nonnull(config);
    g_assert_cmpuint(config->serial, ==, 5);
    g_assert_cmpuint(config->relay_port, ==, 47129);
    provider = eb_broker_config_find(config, "p", 1);
    g_assert_nonnull(provider);
    g_assert_true(eb_secret_equal_bytes(provider->nonce, "the-nonce", 9));
    g_assert_null(eb_broker_config_find(config, "px", 2));
    /* A transaction is over with its commit, and with its first error. */
    {
        g_autoptr(EbBrokerConfig) other = NULL;

        g_assert_false(send_text(stage, EB_BROKER_MSG_COMMIT, &other, &error, 0));
        eb_test_assert_error(error, EB_ERROR_PROTOCOL, "broker.rules", NULL);
        g_clear_error(&error);
        g_assert_true(begin(stage, &other));
        g_assert_false(
            send_text(stage, EB_BROKER_MSG_KEY, &other, NULL, EB_BROKER_TAG_NAME, "p", EB_BROKER_TAG_SECRET, "x", 0));
        g_assert_false(send_text(stage, EB_BROKER_MSG_COMMIT, &other, NULL, 0));
        g_assert_true(begin(stage, &other));
        g_assert_true(send_text(stage, EB_BROKER_MSG_PROVIDER, &other, NULL, EB_BROKER_TAG_NAME, "p",
                                EB_BROKER_TAG_KIND, "openai", EB_BROKER_TAG_URL, "https://p.test", 0));
        /* Without a key there is nothing to put on. */
        g_assert_false(send_text(stage, EB_BROKER_MSG_COMMIT, &other, NULL, 0));
        g_assert_null(other);
    }
}

static void
test_report(void)
{
    static const struct {
        const char *text;
        const char *host;
        guint port;
    } ROWS[] = {{"a.test:443", "a.test", 443}, {"[2001:db8::1]:80", "2001:db8::1", 80}, {"provider", "provider", 0}};

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        EbBrokerWriter writer;
        EbBrokerMsg msg;
        guint port;
        g_autofree char *host = NULL;

        eb_broker_writer_begin(&writer, buffer, sizeof buffer, EB_BROKER_MSG_DENIED);
        eb_broker_writer_string(&writer, EB_BROKER_TAG_HOST, ROWS[i].text);
        g_assert_true(eb_broker_msg_decode(buffer, eb_broker_writer_end(&writer), &msg, NULL));
        host = eb_broker_report_target(&msg, &port);
        g_assert_cmpstr(host, ==, ROWS[i].host);
        g_assert_cmpuint(port, ==, ROWS[i].port);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/proto/round-trip", test_round_trip);
    g_test_add_func("/broker/proto/unshown", test_unshown);
    g_test_add_func("/broker/proto/malformed", test_malformed);
    g_test_add_func("/broker/proto/bounds", test_bounds);
    g_test_add_func("/broker/proto/stage", test_stage);
    g_test_add_func("/broker/proto/report", test_report);
    return g_test_run();
}
