/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flags.c - parse argv into a struct cli; print help from the same tables.
 *
 * The flags of a command are: its own, the configuration keys of its groups,
 * and --json --quiet --verbose --help. getopt_long reads them; for an unknown flag the most similar
 * name is suggested.
 */
#include "base/log.h"
#include "base/text.h"
#include "cli/cmd.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 128 };

/* Values of getopt's `val`: an index into one of the tables. */
enum { OPT_OWN = 1000, OPT_KEY = 2000, OPT_NO_KEY = 3000 };

static const struct option common_options[] = {
    {"quiet", no_argument, NULL, 'q'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
};

static bool key_is_flag(const struct command *c, const struct config_key *k)
{
    return (c->groups & (int)k->group) != 0;
}

static size_t make_options(const struct command *c, struct arena *a, struct option *out)
{
    size_t n = 0;

    for (int i = 0; c->flags && c->flags[i].name; i++)
        out[n++] = (struct option){c->flags[i].name, c->flags[i].value ? 1 : 0, NULL, OPT_OWN + i};
    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *k = &config_keys[i];

        if (!key_is_flag(c, k))
            continue;
        out[n++] = (struct option){k->name, k->value ? 1 : 0, NULL, OPT_KEY + (int)i};
        if (!k->value)
            out[n++] =
                (struct option){arena_printf(a, "no-%s", k->name), 0, NULL, OPT_NO_KEY + (int)i};
    }
    if (c->json)
        out[n++] = (struct option){"json", no_argument, NULL, 'j'};
    for (size_t i = 0; i < ARRAY_LEN(common_options); i++)
        out[n++] = common_options[i];
    if (n >= MAX_OPTIONS)
        BUG("%s has %zu flags", c->name, n);
    out[n] = (struct option){0};
    return n;
}

static size_t distance(const char *a, const char *b)
{
    size_t row[64], la = strlen(a), lb = strlen(b);

    if (la >= ARRAY_LEN(row) || lb >= ARRAY_LEN(row))
        return 99;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[lb];
}

const char *nearest_name(const char *written, const char *const *names, size_t count)
{
    size_t best = strlen(written) / 2 + 1;
    const char *found = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t d = distance(written, names[i]);

        if (d < best) {
            best = d;
            found = names[i];
        }
    }
    return found;
}

static bool unknown_flag(struct cli *cli, const struct option *options, size_t count,
                         const char *written, struct error *err)
{
    const char *names[MAX_OPTIONS], *near, *end = strchrnul(written, '=');
    const char *bare = arena_strndup(cli->a, written, (size_t)(end - written));

    for (size_t i = 0; i < count; i++)
        names[i] = options[i].name;
    near = nearest_name(bare + strspn(bare, "-"), names, count);
    error_set(err, ERROR_USE, "cutegen %s has no flag %s", cli->command->name, bare);
    if (config_was(bare + strspn(bare, "-")))
        return error_hint(err, "%s", config_was(bare + strspn(bare, "-")));
    if (near)
        return error_hint(err, "did you mean --%s? `cutegen help %s` lists them all", near,
                          cli->command->name);
    return error_hint(err, "`cutegen help %s` lists its flags", cli->command->name);
}

static bool take_flag(struct cli *cli, int opt, struct error *err)
{
    const char *name;

    switch (opt) {
    case 'j':
        cli->json = true;
        return true;
    case 'q':
        cli->quiet = true;
        log_set_level(LOG_QUIET);
        return true;
    case 'v':
        log_set_level(log_level() >= LOG_INFO ? LOG_DEBUG : LOG_INFO);
        return true;
    default:
        break;
    }
    if (opt >= OPT_KEY) {
        bool no = opt >= OPT_NO_KEY;

        name = config_keys[opt - (no ? OPT_NO_KEY : OPT_KEY)].name;
        return config_set(cli->config, name,
                          no       ? "no"
                          : optarg ? optarg
                                   : "yes",
                          ORIGIN_FLAG, arena_printf(cli->a, "--%s%s", no ? "no-" : "", name), err);
    }
    name = cli->command->flags[opt - OPT_OWN].name;
    if (cli->given_count == CLI_MAX_FLAGS)
        return error_set(err, ERROR_USE, "too many flags");
    cli->given[cli->given_count].name = name;
    cli->given[cli->given_count++].value = optarg ? optarg : "";
    return true;
}

static bool take_words(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct command *c = cli->command;

    for (int i = optind; i < argc; i++) {
        if (cli->word_count == CLI_MAX_WORDS || cli->word_count == c->max_words) {
            error_set(err, ERROR_USE, "cutegen %s: unexpected argument '%s'", c->name, argv[i]);
            return error_hint(err, "use: cutegen %s %s", c->name, c->words);
        }
        cli->words[cli->word_count++] = argv[i];
    }
    if (cli->word_count < c->min_words) {
        error_set(err, ERROR_USE, "cutegen %s wants %s", c->name, c->words);
        return error_hint(err, "`cutegen help %s` says more", c->name);
    }
    return true;
}

static int option_named(const struct option *options, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(options[i].name, name))
            return options[i].val;
    return '?';
}

bool flags_parse(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct option options[MAX_OPTIONS];
    size_t count = make_options(cli->command, cli->a, options);
    int opt;

    opterr = 0;
    optind = 1;
    for (;;) {
        int at = optind;

        opt = getopt_long(argc, argv, ":qvho:", options, NULL);
        if (opt < 0)
            break;
        if (opt == 'h') {
            help_command(cli->command, stdout);
            cli->command = NULL; /* nothing left to do */
            return true;
        }
        if (opt == 'o') /* by convention -o FILE is --output FILE, where the command has it */
            opt = option_named(options, count, "output");
        if (opt == ':') {
            error_set(err, ERROR_USE, "%s wants a value", argv[optind - 1]);
            return error_hint(err, "`cutegen help %s` says which", cli->command->name);
        }
        if (opt == '?')
            return unknown_flag(
                cli, options, count,
                optopt && optopt < OPT_OWN && at == optind ? argv[at] : argv[optind - 1], err);
        if (!take_flag(cli, opt, err))
            return false;
    }
    return take_words(cli, argc, argv, err);
}

const char *flag_get(const struct cli *cli, const char *name)
{
    for (int i = cli->given_count - 1; i >= 0; i--)
        if (!strcmp(cli->given[i].name, name))
            return cli->given[i].value;
    return NULL;
}

const char *const *flags_said(const struct cli *cli, int groups)
{
    const char **out = arena_array(cli->a, config_key_count + 2 * CLI_MAX_FLAGS, sizeof(*out));
    const char *const *said = config_said(cli->config);
    bool device = (groups & GROUP_DEVICE) != 0;
    size_t n = 0;

    for (; *said; said++) {
        const struct config_key *k = config_find(*said);
        const char *value = config_get(cli->config, k->name);

        if (!((int)k->group & groups) || !strcmp(k->name, "set") || !strcmp(k->name, "shapes") ||
            !strcmp(k->name, "runs") || !strcmp(k->name, "store") || !strcmp(k->name, "device"))
            continue;
        out[n++] = k->value
                       ? arena_printf(cli->a, "--%s=%s", k->name, value)
                       : arena_printf(cli->a, "--%s%s", strcmp(value, "yes") ? "no-" : "", k->name);
    }
    for (size_t i = 0; device && cli->settings.set && cli->settings.set[i] && i < CLI_MAX_FLAGS;
         i++)
        out[n++] = arena_printf(cli->a, "--set=%s", cli->settings.set[i]);
    for (size_t i = 0;
         device && cli->settings.shapes && cli->settings.shapes[i] && i < CLI_MAX_FLAGS - 1; i++)
        out[n++] = arena_printf(cli->a, "--shapes=%s", cli->settings.shapes[i]);
    return out;
}

const char *const *flag_all(const struct cli *cli, const char *name)
{
    const char **all = arena_array(cli->a, (size_t)cli->given_count + 1, sizeof(*all));
    size_t n = 0;

    for (int i = 0; i < cli->given_count; i++)
        if (!strcmp(cli->given[i].name, name))
            all[n++] = cli->given[i].value;
    return all;
}

/* ---- help ----------------------------------------------------------------- */

static void help_flag(FILE *out, const char *name, const char *value, const char *help,
                      const char *preset)
{
    int width = fprintf(out, "  --%s%s%s", name, value ? " " : "", value ? value : "");
    struct buf b = buf_init(4096);

    buf_puts(&b, help);
    if (preset && *preset)
        buf_printf(&b, " [%s]", preset);
    width += fprintf(out, "%*s", width < 28 ? 28 - width : 2, "");
    print_help(out, b.data, b.len, width, 28);
    buf_release(&b);
}

/* Where a line that starts with blanks goes on: below what stands behind its last gap. */
static int hang_of(struct text line)
{
    size_t hang = 0;

    for (size_t i = 1; i < line.len; i++)
        if (line.data[i] != ' ' && line.data[i - 1] == ' ' && (i < 2 || line.data[i - 2] == ' '))
            hang = i;
    return (int)hang;
}

/* Lines of a paragraph flow together. One that starts with a blank stands for itself. */
static void help_text(FILE *out, const char *help)
{
    struct text rest = text_of(help), line;
    struct buf paragraph = buf_init(64 << 10);
    bool more;

    fputc('\n', out);
    do {
        more = text_next_line(&rest, &line);
        if (more && line.len && line.data[0] != ' ') {
            buf_printf(&paragraph, "%s%.*s", paragraph.len ? " " : "", (int)line.len, line.data);
            continue;
        }
        if (paragraph.len)
            print_help(out, paragraph.data, paragraph.len, 0, 0);
        buf_clear(&paragraph);
        if (more)
            print_help(out, line.data, line.len, 0, hang_of(line));
    } while (more);
    buf_release(&paragraph);
}

void help_command(const struct command *c, FILE *out)
{
    static const struct {
        enum config_group group;
        const char *title;
    } groups[] = {{GROUP_STORE, "Store"},
                  {GROUP_LOOP, "Loop"},
                  {GROUP_MODEL, "Model"},
                  {GROUP_DEVICE, "Device and judgement"},
                  {GROUP_TOOLS, "Tools"}};

    fprintf(out, "cutegen %s%s%s\n  ", c->name, *c->words ? " " : "", c->words);
    print_help(out, c->summary, strlen(c->summary), 2, 2);
    if (*c->help)
        help_text(out, c->help);
    fprintf(out, "\nFlags [default]\n");
    for (int i = 0; c->flags && c->flags[i].name; i++)
        help_flag(out, c->flags[i].name, c->flags[i].value, c->flags[i].help, NULL);
    if (c->json)
        help_flag(out, "json", NULL, "for programs: JSON on stdout, keys in docs/commands.md",
                  NULL);
    help_flag(out, "quiet, -q", NULL, "only the result", NULL);
    help_flag(out, "verbose, -v", NULL, "more messages on stderr; twice: even more", NULL);
    for (size_t g = 0; g < ARRAY_LEN(groups); g++) {
        if (!(c->groups & (int)groups[g].group))
            continue;
        fprintf(out, "\n%s\n", groups[g].title);
        for (size_t i = 0; i < config_key_count; i++) {
            const struct config_key *k = &config_keys[i];

            char name[64];

            snprintf(name, sizeof(name), "%s%s", k->value ? "" : "[no-]", k->name);
            if (k->group == groups[g].group)
                help_flag(out, name, k->value, k->help, k->preset);
        }
    }
}

void help_all(FILE *out)
{
    fprintf(out, "cutegen turns a PyTorch module into a faster, verified CuTe kernel.\n\n");
    for (const struct command *c = commands; c->name; c++) {
        int width = fprintf(out, "  cutegen %s %s", c->name, c->words);

        width += fprintf(out, "%*s", width < 38 ? 38 - width : 2, "");
        print_help(out, c->summary, strlen(c->summary), width, 38);
    }
    fprintf(out, "\nStart with: cutegen run examples/swish.py\n"
                 "More:       cutegen help COMMAND, cutegen doctor, cutegen config\n"
                 "Exit codes: 0 success; 1 what was judged failed; 2 wrong use; 3 the machine\n"
                 "            lacks something; 4 a budget ran out; 5 no edit in a reply;\n"
                 "            130 interrupted\n");
}
