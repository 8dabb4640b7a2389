/* SPDX-License-Identifier: MIT */
/* The one C++ file: toml++ in, EbConfigSection out. No exception and no C++ type leaves it. */
#include "core/config/eb-toml.h"

#include <cstring>
#include <string>
#include <toml++/toml.h>
#include <vector>

namespace {

struct Reader {
    const char *name;
    std::vector<std::string> problems;
    guint more = 0;

    void problem(const toml::source_region &where, const std::string &text)
    {
        if (problems.size() >= EB_TOML_MAX_PROBLEMS) {
            more++;
            return;
        }
        problems.push_back(std::string(name) + ":" + std::to_string(where.begin.line) + ":" +
                           std::to_string(where.begin.column) + ": " + text);
    }
};

void read_table(Reader &reader, const toml::table &table, EbConfigSection *section);

std::string
join(EbConfigSection *section, const std::string &key)
{
    std::string path = eb_config_section_get_path(section);
    return path.empty() ? key : path + "." + key;
}

bool
has_nul(const std::string &text)
{
    return text.find('\0') != std::string::npos;
}

/* NULL = a problem was noted. */
GVariant *
read_list(Reader &reader, const toml::array &list, const std::string &key)
{
    GVariantBuilder builder;
    bool numbers = !list.empty() && list.front().is_integer();

    g_variant_builder_init(&builder, numbers ? G_VARIANT_TYPE("ax") : G_VARIANT_TYPE("as"));
    for (const toml::node &item : list) {
        if (numbers && item.is_integer()) {
            g_variant_builder_add(&builder, "x", static_cast<gint64>(item.as_integer()->get()));
        } else if (!numbers && item.is_string() && !has_nul(item.as_string()->get())) {
            g_variant_builder_add(&builder, "s", item.as_string()->get().c_str());
        } else {
            reader.problem(item.source(), key + ": a list holds either texts or whole numbers");
            g_variant_builder_clear(&builder);
            return nullptr;
        }
    }
    return g_variant_builder_end(&builder);
}

GVariant *
read_value(Reader &reader, const toml::node &node, const std::string &key)
{
    switch (node.type()) {
    case toml::node_type::string:
        if (has_nul(node.as_string()->get())) {
            reader.problem(node.source(), key + ": a text with a NUL character");
            return nullptr;
        }
        return g_variant_new_string(node.as_string()->get().c_str());
    case toml::node_type::integer:
        return g_variant_new_int64(node.as_integer()->get());
    case toml::node_type::boolean:
        return g_variant_new_boolean(node.as_boolean()->get());
    case toml::node_type::floating_point:
        return g_variant_new_double(node.as_floating_point()->get());
    case toml::node_type::array:
        return read_list(reader, *node.as_array(), key);
    default:
        reader.problem(node.source(), key + ": dates and times are not used here, write a text");
        return nullptr;
    }
}

bool
is_table_list(const toml::node &node)
{
    return node.is_array() && !node.as_array()->empty() && node.as_array()->front().is_table();
}

void
read_table_list(Reader &reader, const toml::array &list, EbConfigSection *section, const std::string &key)
{
    g_autoptr(EbConfigSection) holder = eb_config_section_new(join(section, key).c_str());
    guint index = 0;

    for (const toml::node &item : list) {
        std::string name = std::to_string(index++);
        if (!item.is_table()) {
            reader.problem(item.source(), key + ": a list of tables holds tables alone");
            return;
        }
        g_autoptr(EbConfigSection) child = eb_config_section_new(join(holder, name).c_str());
        read_table(reader, *item.as_table(), child);
        eb_config_section_add_child(holder, name.c_str(), child);
    }
    eb_config_section_add_child(section, key.c_str(), holder);
}

void
read_table(Reader &reader, const toml::table &table, EbConfigSection *section)
{
    for (auto &&[name, node] : table) {
        std::string key(name.str());
        if (has_nul(key)) {
            reader.problem(name.source(), "a key with a NUL character");
        } else if (node.is_table()) {
            g_autoptr(EbConfigSection) child = eb_config_section_new(join(section, key).c_str());
            read_table(reader, *node.as_table(), child);
            eb_config_section_add_child(section, key.c_str(), child);
        } else if (is_table_list(node)) {
            read_table_list(reader, *node.as_array(), section, key);
        } else {
            GVariant *value = read_value(reader, node, key);
            if (value != nullptr) {
                g_variant_ref_sink(value);
                eb_config_section_set(section, key.c_str(), value, reader.name, name.source().begin.line);
                g_variant_unref(value);
            }
        }
    }
}

/* What people did who get the parser's words, which alone help those who know the format. */
const char *
hint_for(const char *words)
{
    static const struct {
        const char *part, *hint;
    } HINTS[] = {
        {"cannot redefine existing", " (it stands there twice: keep one)"},
        {"\\uFEFF", " (an invisible mark stands there: delete the line and write it anew)"},
        {"expected '=', saw", " (write KEY = VALUE)"},
        {"unescaped control characters", " (is the quote missing at the end of this line?)"},
        {"after '\\r'", " (lines end in CR alone: save the file with LF)"},
        {"keys, tables, whitespace or comments, saw '{'", " (this is JSON, not TOML)"},
        {"could not determine value type", " (a text stands in quotes: KEY = \"VALUE\")"},
        {"is not representable in 64 bits", " (the number is too large)"},
    };

    for (const auto &at : HINTS) {
        if (strstr(words, at.part) != nullptr)
            return at.hint;
    }
    return "";
}

/* NULL: no TOML. */
EbConfigSection *
parse(const char *text, gsize length, Reader &reader)
{
    try {
        toml::table table = toml::parse(std::string_view(text, length), std::string(reader.name));
        g_autoptr(EbConfigSection) root = eb_config_section_new("");
        read_table(reader, table, root);
        return static_cast<EbConfigSection *>(g_steal_pointer(&root));
    } catch (const toml::parse_error &problem) {
        /* The parser's words may quote the text: one line, and nothing a terminal would obey. */
        g_autofree char *words = eb_log_escape(problem.description().data(), problem.description().size(), 300);
        const char *plain = g_str_has_prefix(words, "Error while parsing") && strstr(words, ": ") != nullptr
                                ? strstr(words, ": ") + 2
                                : words;
        reader.problem(problem.source(), std::string(plain) + hint_for(words));
    }
    return nullptr;
}

} // namespace

extern "C" EbConfigSection *
eb_toml_read(const char *text, gsize length, const char *name, GPtrArray *problems)
{
    g_return_val_if_fail(text != nullptr || length == 0, nullptr);
    g_return_val_if_fail(name != nullptr && problems != nullptr, nullptr);

    g_autoptr(GError) error = nullptr;
    if (!eb_toml_scan(text, length, name, &error)) {
        g_ptr_array_add(problems, g_strdup(error->message));
        return nullptr;
    }
    try {
        Reader reader{name, {}};
        EbConfigSection *root = parse(text != nullptr ? text : "", length, reader);
        for (const std::string &problem : reader.problems)
            g_ptr_array_add(problems, g_strdup(problem.c_str()));
        if (reader.more > 0)
            g_ptr_array_add(problems, g_strdup_printf("%s: %u more problems", name, reader.more));
        return root;
    } catch (...) {
        g_ptr_array_add(problems, g_strdup_printf("%s: cannot be read as TOML", name));
    }
    return nullptr;
}

extern "C" EbConfigSection *
eb_toml_parse(const char *text, gsize length, const char *name, GError **error)
{
    g_autoptr(GPtrArray) problems = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(EbConfigSection) root = eb_toml_read(text, length, name, problems);

    if (problems->len == 0)
        return static_cast<EbConfigSection *>(g_steal_pointer(&root));
    g_ptr_array_add(problems, nullptr);
    g_autofree char *message = g_strjoinv("\n", reinterpret_cast<char **>(problems->pdata));
    eb_set_error(error, EB_ERROR_CONFIG, length > EB_TOML_MAX_BYTES ? "config.too-long" : "config.syntax", "%s",
                 message);
    return nullptr;
}
