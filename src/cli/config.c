/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - one table of keys; values with their origin.
 *
 * To add a key: a row in config_keys, a member of struct settings or
 * run_options, a line in the function that fills it. Flag, variable, ini key,
 * help, completion and `cutegen config` follow from the row.
 *
 * Hides libinih and the order of precedence.
 */
#include "cli/config.h"

#include "base/buf.h"
#include "base/fs.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct config_key config_keys[] = {
    {"runs", GROUP_STORE, "DIR", "runs", "folder of the store and of all runs"},
    {"store", GROUP_STORE, "URL", "", "PostgreSQL server of a store for many machines: postgres://HOST/DATABASE (docs/cluster.md)"},
    {"model", GROUP_MODEL, "SPEC", "builtin", "who writes the kernels: builtin, openai:MODEL, responses:MODEL, anthropic:MODEL, exec:COMMAND, replay:FILE"},
    {"base-url", GROUP_MODEL, "URL", "", "base URL of the provider, if not its usual one"},
    {"key-env", GROUP_MODEL, "NAME", "", "environment variable with the API key, if not the provider's usual one"},
    {"key-file", GROUP_MODEL, "PATH", "", "file (mode 0600) that holds the API key"},
    {"ca-file", GROUP_MODEL, "PATH", "", "certificates of the authority that signed the server's certificate; default: the system's"},
    {"proxy", GROUP_MODEL, "URL", "", "proxy for model calls; https_proxy and the like if not set"},
    {"prices", GROUP_MODEL, "FILE", "", "prices that override the built-in, dated table (docs/models.md)"},
    {"effort", GROUP_MODEL, "LEVEL", "", "reasoning effort asked of the model: low, medium, high"},
    {"temperature", GROUP_MODEL, "T", "", "sampling temperature; the provider's default if not set"},
    {"max-tokens", GROUP_MODEL, "N", "32768", "longest reply"},
    {"record", GROUP_MODEL, "FILE", "", "write every call to this transcript, for replay:FILE"},
    {"prompts", GROUP_MODEL, "DIR", "", "prompt templates that override the built-in ones"},
    {"example", GROUP_MODEL, "none|other|best", "best", "worked example shown to a model: best, the most similar; other, from another operator (suites)"},
    {"budget-usd", GROUP_MODEL, "USD", "0", "US dollars that may be spent; 0: no limit"},
    {"budget-tokens", GROUP_MODEL, "N", "0", "tokens that may be used; 0: no limit"},
    {"budget-calls", GROUP_MODEL, "N", "0", "model calls that may be made; 0: no limit"},
    {"budget-minutes", GROUP_MODEL, "N", "0", "minutes the run may take; 0: no limit"},
    {"call-deadline", GROUP_MODEL, "SECONDS", "600", "longest wait for one reply"},
    {"stall", GROUP_MODEL, "SECONDS", "180", "longest silence of a server before the call is retried"},
    {"depth", GROUP_LOOP, "N", "auto", "maximum number of optimisation steps; auto: 12 for a model, all steps of the built-in engineer"},
    {"repairs", GROUP_LOOP, "N", "3", "repairs tried per step"},
    {"patience", GROUP_LOOP, "N", "5", "stop after this many steps without a gain; 0: never"},
    {"profile-from", GROUP_LOOP, "DEPTH", "auto", "depth from which the model sees a profile; auto: by kernel class"},
    {"width", GROUP_LOOP, "N", "1", "candidates tried per step"},
    {"seed", GROUP_LOOP, "none|builtin", "none", "builtin: a model starts from the built-in engineer's best kernel"},
    {"fresh", GROUP_LOOP, NULL, "no", "ignore what the built-in engineer found for this task in earlier runs"},
    {"search", GROUP_LOOP, "refine|beam|restarts", "refine", "refine one kernel, several kernels at a time, or several one after the other"},
    {"beam", GROUP_LOOP, "N", "3", "with --search beam: kernels that are kept"},
    {"restarts", GROUP_LOOP, "N", "3", "with --search restarts: number of starts, each with an equal share of the depth"},
    {"parallel-calls", GROUP_LOOP, "N", "1", "candidates of one step asked for at the same time, up to 16"},
    {"floor-stop", GROUP_LOOP, "PERCENT", "3", "stop a model's run when this close to the floor; 0: never"},
    {"memory", GROUP_LOOP, NULL, "yes", "tell the model what other runs of the task's class learnt on this device"},
    {"tune", GROUP_LOOP, "N", "12", "combinations of the best kernel's tunables (CUTEGEN_TUNE) to try; 0: none"},
    {"ahead", GROUP_LOOP, "N", "auto", "kernels of the built-in engineer to compile ahead at a time; auto: by cores and memory"},
    {"order", GROUP_LOOP, "auto|steps|predicted", "auto", "where the built-in engineer begins: with the plain kernel, or the one predicted to be fastest; auto: the latter on a GPU"},
    {"advance", GROUP_LOOP, "best|last", "best", "the next step starts from the best kernel, or from the last correct one"},
    {"device", GROUP_DEVICE, "DEVICE", "auto", "auto, simt, cuda:N; for:H200 to build for a GPU that is not here"},
    {"simt-as", GROUP_DEVICE, "GPU", "H200", "GPU whose limits and times simt models: H200, H100, A100, B200, RTX4090, RTX5090"},
    {"target", GROUP_DEVICE, "cute|cuda|triton|cutedsl", "cute", "what kernels are written in: CuTe, CUDA C++ without it, Triton, or the CuTe DSL"},
    {"simt-arch", GROUP_DEVICE, "80|86|89|90a|100a|120|120a", "80", "architecture to build for on simt; with an a: also instructions of that GPU alone"},
    {"check", GROUP_DEVICE, "off|memory|full", "full", "what simt checks"},
    {"draws", GROUP_DEVICE, "N", "5", "input draws per test"},
    {"accept", GROUP_DEVICE, NULL, "no", "also check a kernel that passed with compute-sanitizer's tools (GPU) and simt's full check"},
    {"look", GROUP_DEVICE, NULL, "yes", "on a GPU: run a failure again under compute-sanitizer to explain it"},
    {"allow-torch", GROUP_DEVICE, NULL, "no", "judge a ModelNew that uses torch's operators inside"},
    {"trust", GROUP_DEVICE, NULL, "no", "run a ModelNew even if the Linux kernel cannot confine it (cutegen doctor)"},
    {"baseline", GROUP_DEVICE, "defaults|strict|tf32", "defaults", "PyTorch's arithmetic: TF32 in convolutions only, nowhere, or everywhere"},
    {"compile", GROUP_DEVICE, "none|default|max-autotune", "default", "torch.compile as a further baseline, on a GPU, once the last step is done"},
    {"scale", GROUP_DEVICE, NULL, "yes", "reduce the task's sizes on simt"},
    {"set", GROUP_DEVICE, "NAME=VALUE", "", "override a size constant of the task; may be given again"},
    {"backward", GROUP_DEVICE, NULL, "no", "judge gradients: of inputs and parameters, for drawn gradients of the outputs"},
    {"shapes", GROUP_DEVICE, "NAME=VALUES", "", "judge at each of these sizes (BATCH=1,8,64); may be given again"},
    {"build-deadline", GROUP_DEVICE, "SECONDS", "180", "longest compile, in CPU time"},
    {"run-deadline", GROUP_DEVICE, "SECONDS", "60", "longest run of a kernel"},
    {"task-deadline", GROUP_DEVICE, "SECONDS", "60", "longest import of a task file"},
    {"task-memory", GROUP_DEVICE, "MIB", "0", "memory a task may use; 0: three quarters of the machine's memory"},
    {"task-network", GROUP_DEVICE, NULL, "no", "a task may connect to the Internet"},
    {"server", GROUP_TOOLS, NULL, "yes", "keep builders and oracles warm in a background server"},
    {"server-idle", GROUP_TOOLS, "SECONDS", "600", "the server ends after this long without work"},
    {"compile-on", GROUP_TOOLS, "here|queue", "here", "who compiles kernels: this machine, or workers that take compile jobs (docs/cluster.md)"},
    {"python", GROUP_TOOLS, "PATH", "", "Python with PyTorch; found if not set"},
    {"dsl-python", GROUP_TOOLS, "PATH", "", "Python with the CuTe DSL, for candidates in it; default: --python"},
    {"cc", GROUP_TOOLS, "PATH", "", "C compiler; found if not set"},
    {"cuda", GROUP_TOOLS, "DIR", "", "CUDA toolkit; found if not set"},
    {"cutlass", GROUP_TOOLS, "DIR", "", "CUTLASS include folder; found if not set"},
};
/* clang-format on */
const size_t config_key_count = ARRAY_LEN(config_keys);

enum { MAX_SET = 64, MAX_INI_BYTES = 1 << 20 };

struct config {
    struct arena *a;
    struct {
        const char *text, *where;
        enum config_origin origin;
    } values[ARRAY_LEN(config_keys)];
    struct config_list {
        const char *items[MAX_SET + 1]; /* NULL-terminated */
        size_t count;
    } set, shapes; /* all values of keys that may be repeated */
};

static int key_index(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(config_keys); i++) {
        const char *a = config_keys[i].name, *b = name;

        while (*a && (*a == *b || (*a == '-' && *b == '_')))
            a++, b++;
        if (!*a && !*b)
            return (int)i;
    }
    return -1;
}

struct config *config_new(struct arena *a)
{
    struct config *c = arena_alloc(a, sizeof(*c));

    c->a = a;
    for (size_t i = 0; i < ARRAY_LEN(config_keys); i++) {
        c->values[i].text = config_keys[i].preset;
        c->values[i].where = "default";
    }
    return c;
}

/* ---- checking ------------------------------------------------------------ */

static bool is_path(const char *key)
{
    static const char *const paths[] = {"runs",    "key-file", "record", "prompts",
                                        "ca-file", "prices",   "python", "dsl-python",
                                        "cc",      "cuda",     "cutlass"};

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (!strcmp(paths[i], key))
            return true;
    return false;
}

/* Is `value` one of "a|b|c"? */
static bool is_choice(const char *choices, const char *value)
{
    size_t len = strlen(value);

    if (strchr(value, '|'))
        return false;
    for (const char *p = choices; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
        if (!strncmp(p, value, len) && (p[len] == '|' || p[len] == '\0'))
            return len > 0;
    return false;
}

static bool is_number(const char *value, bool whole)
{
    char *end;
    double v;

    errno = 0;
    v = strtod(value, &end);
    if (end == value || *end || errno || v < 0 || v > 1e15)
        return false;
    return !whole || strspn(value, "0123456789") == strlen(value);
}

static const char *as_bool(const char *value)
{
    static const char *const names[][2] = {{"yes", "yes"}, {"true", "yes"}, {"on", "yes"},
                                           {"1", "yes"},   {"no", "no"},    {"false", "no"},
                                           {"off", "no"},  {"0", "no"}};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(names[i][0], value))
            return names[i][1];
    return NULL;
}

/* What is wrong with this value, or NULL. The placeholder of a key's value also names its kind. */
static const char *value_fault(const struct config_key *k, const char *value)
{
    if (!k->value)
        return as_bool(value) ? NULL : "expected yes or no";
    if (strchr(k->value, '|'))
        return is_choice(k->value, value) ? NULL : k->value;
    if ((!strcmp(k->name, "profile-from") || !strcmp(k->name, "depth") ||
         !strcmp(k->name, "ahead")) &&
        !strcmp(value, "auto"))
        return NULL;
    if (!strcmp(k->name, "store"))
        return !*value || !strncmp(value, "postgres://", 11) || !strncmp(value, "postgresql://", 13)
                   ? NULL
                   : "expected postgres://HOST/DATABASE";
    if (!strcmp(k->name, "set") || !strcmp(k->name, "shapes"))
        return strchr(value, '=') && value[0] != '=' ? NULL : "expected NAME=VALUE";
    if (!strcmp(k->name, "draws") && is_number(value, true) && strtol(value, NULL, 10) < 1)
        return "expected at least one draw";
    if (!strcmp(k->value, "N") || !strcmp(k->value, "DEPTH") || !strcmp(k->value, "PERCENT") ||
        !strcmp(k->value, "MIB"))
        return is_number(value, true) ? NULL : "expected a whole number";
    if (!strcmp(k->value, "SECONDS"))
        return is_number(value, true) && strcmp(value, "0") ? NULL : "expected whole seconds";
    if (!strcmp(k->value, "USD") || !strcmp(k->value, "T"))
        return !*value || is_number(value, false) ? NULL : "expected a number";
    return NULL;
}

/* Paths in a file are relative to its folder; ~/ is the home folder. */
static const char *resolve_path(struct config *c, const char *value, const char *file)
{
    const char *home = getenv("HOME");
    const char *slash = file ? strrchr(file, '/') : NULL;

    if (value[0] == '~' && value[1] == '/' && home)
        return path_join(c->a, home, value + 2);
    /* A bare program name is looked up on PATH. */
    if (!slash || value[0] == '/' || !*value || !strchr(value, '/'))
        return value;
    return path_join(c->a, arena_strndup(c->a, file, (size_t)(slash - file)), value);
}

const struct config_key *config_find(const char *key)
{
    int i = key_index(key);

    return i >= 0 ? &config_keys[i] : NULL;
}

const char *config_was(const char *key)
{
    if (strcmp(key, "allow-tf32") == 0 || strcmp(key, "allow_tf32") == 0)
        return "it was replaced by baseline: --baseline tf32 allows TF32 everywhere, strict "
               "nowhere; without it, PyTorch's defaults apply (convolutions, not products)";
    return NULL;
}

bool config_set(struct config *c, const char *key, const char *value, enum config_origin origin,
                const char *where, struct error *err)
{
    int i = key_index(key);
    const char *fault, *text;
    struct config_list *list;

    if (i < 0) {
        error_set(err, ERROR_USE, "unknown key '%s' (%s)", key, where);
        return config_was(key) ? error_hint(err, "%s", config_was(key)) : false;
    }
    fault = value_fault(&config_keys[i], value);
    if (fault)
        return error_set(err, ERROR_USE, "%s: '%s' is not a value for %s: %s", where, value,
                         config_keys[i].name, fault);
    text = config_keys[i].value ? arena_strdup(c->a, value) : as_bool(value);
    if (is_path(config_keys[i].name))
        text =
            resolve_path(c, text, origin == ORIGIN_USER || origin == ORIGIN_PROJECT ? where : NULL);
    list = !strcmp(config_keys[i].name, "set")      ? &c->set
           : !strcmp(config_keys[i].name, "shapes") ? &c->shapes
                                                    : NULL;
    if (list) {
        if (list->count == MAX_SET)
            return error_set(err, ERROR_USE, "more than %d values for %s", MAX_SET, key);
        list->items[list->count++] = text;
        if (list->count > 1)
            text = arena_printf(c->a, "%s %s", c->values[i].text, text);
    }
    c->values[i].text = text;
    c->values[i].origin = origin;
    c->values[i].where = arena_strdup(c->a, where);
    return true;
}

/* ---- sources ------------------------------------------------------------- */

struct ini_reading {
    struct config *c;
    enum config_origin origin;
    const char *path;
    struct error first; /* what was wrong with the first bad line */
};

static int ini_line(void *user, const char *section, const char *name, const char *value)
{
    struct ini_reading *r = user;

    if (r->first.kind != ERROR_NONE)
        return 0;
    if (*section && strcmp(section, "cutegen"))
        return error_set(&r->first, ERROR_USE, "unknown section [%s]", section);
    if (key_index(name) < 0) {
        error_set(&r->first, ERROR_USE, "unknown key '%s'", name);
        return config_was(name) ? error_hint(&r->first, "%s", config_was(name)) : false;
    }
    return config_set(r->c, name, value, r->origin, r->path, &r->first);
}

bool config_read_file(struct config *c, const char *path, enum config_origin origin,
                      struct error *err)
{
    struct ini_reading r = {.c = c, .origin = origin, .path = path};
    struct text data;
    int line;

    if (!file_exists(path))
        return true;
    if (!file_read(path, MAX_INI_BYTES, c->a, &data, err))
        return error_add(err, "reading the configuration");
    line = ini_parse_string(data.data, ini_line, &r);
    if (line == 0 && r.first.kind == ERROR_NONE)
        return true;
    error_set(err, ERROR_USE, "%s:%d: %s", path, line,
              r.first.kind == ERROR_NONE ? "neither a [section] nor a `key = value`"
                                         : r.first.text);
    return error_hint(err, "%s",
                      r.first.hint[0] ? r.first.hint
                                      : "`cutegen config` lists all keys; comments begin with ;");
}

static bool read_environment(struct config *c, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(config_keys); i++) {
        char *name = arena_printf(c->a, "CUTEGEN_%s", config_keys[i].name);
        const char *value;

        for (char *p = name; *p; p++)
            *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        value = getenv(name);
        if (value && *value &&
            !config_set(c, config_keys[i].name, value, ORIGIN_ENVIRONMENT, name, err))
            return false;
    }
    return true;
}

/* Which Python has PyTorch, if not configured: the one that started a wheel's `cutegen`, or the one
 * that this machine's set-up recorded. */
static void read_setup(struct config *c)
{
    const char *started_by = getenv("CUTEGEN_STARTED_BY");
    struct error ignored = {0};
    struct text line;
    char *path;

    if (started_by && *started_by)
        config_set(c, "python", started_by, ORIGIN_DEFAULT,
                   "the Python that cutegen is installed in", &ignored);
    else if (home_tools("python", c->a, &path, &ignored) && file_exists(path) &&
             file_read(path, 4096, c->a, &line, &ignored) && line.len > 1)
        config_set(c, "python", arena_strndup(c->a, line.data, strcspn(line.data, "\n")),
                   ORIGIN_DEFAULT, path, &ignored);
}

bool config_load(struct config *c, struct error *err)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    const char *user = NULL;

    read_setup(c);
    if (xdg && *xdg)
        user = arena_printf(c->a, "%s/cutegen/cutegen.ini", xdg);
    else if (home && *home)
        user = arena_printf(c->a, "%s/.config/cutegen/cutegen.ini", home);
    if (user && !config_read_file(c, user, ORIGIN_USER, err))
        return false;
    if (!config_read_file(c, "cutegen.ini", ORIGIN_PROJECT, err))
        return false;
    return read_environment(c, err);
}

/* ---- use ----------------------------------------------------------------- */

const char *config_get(const struct config *c, const char *key)
{
    int i = key_index(key);

    if (i < 0)
        BUG("no configuration key %s", key);
    return c->values[i].text;
}

const char *config_where(const struct config *c, const char *key)
{
    int i = key_index(key);

    if (i < 0)
        BUG("no configuration key %s", key);
    return c->values[i].where;
}

static const char *get_or_null(const struct config *c, const char *key)
{
    const char *text = config_get(c, key);

    return *text ? text : NULL;
}

static int get_int(const struct config *c, const char *key)
{
    long v = strtol(config_get(c, key), NULL, 10);

    return v > 1000000000 ? 1000000000 : (int)v;
}

void config_settings(const struct config *c, struct settings *out)
{
    const char *temperature = get_or_null(c, "temperature");

    *out = (struct settings){
        .model = config_get(c, "model"),
        .device = config_get(c, "device"),
        .models = config_get(c, "simt-as"),
        .simt_arch = config_get(c, "simt-arch"),
        .python = get_or_null(c, "python"),
        .dsl_python = get_or_null(c, "dsl-python"),
        .cc = get_or_null(c, "cc"),
        .cuda = get_or_null(c, "cuda"),
        .cutlass = get_or_null(c, "cutlass"),
        .prompts = get_or_null(c, "prompts"),
        .runs_dir = config_get(c, "runs"),
        .store_url = config_get(c, "store"),
        .base_url = get_or_null(c, "base-url"),
        .key_env = get_or_null(c, "key-env"),
        .key_file = get_or_null(c, "key-file"),
        .effort = get_or_null(c, "effort"),
        .ca_file = get_or_null(c, "ca-file"),
        .proxy = get_or_null(c, "proxy"),
        .price_file = get_or_null(c, "prices"),
        .record = get_or_null(c, "record"),
        .temperature = temperature ? strtod(temperature, NULL) : -1,
        .max_tokens = get_int(c, "max-tokens"),
        .budget_usd = strtod(config_get(c, "budget-usd"), NULL),
        .budget_tokens = strtoll(config_get(c, "budget-tokens"), NULL, 10),
        .budget_calls = get_int(c, "budget-calls"),
        .budget_minutes = get_int(c, "budget-minutes"),
        .example = config_get(c, "example"),
        .check = config_get(c, "check"),
        .draws = get_int(c, "draws"),
        .build_deadline_s = get_int(c, "build-deadline"),
        .run_deadline_s = get_int(c, "run-deadline"),
        .task_deadline_s = get_int(c, "task-deadline"),
        .task_memory_mib = get_int(c, "task-memory"),
        .call_deadline_s = get_int(c, "call-deadline"),
        .stall_s = get_int(c, "stall"),
        .set = c->set.count ? c->set.items : NULL,
        .shapes = c->shapes.count ? c->shapes.items : NULL,
        .accept = !strcmp(config_get(c, "accept"), "yes"),
        .backward = !strcmp(config_get(c, "backward"), "yes"),
        .look = !strcmp(config_get(c, "look"), "yes"),
        .task_network = !strcmp(config_get(c, "task-network"), "yes"),
        .trust = !strcmp(config_get(c, "trust"), "yes"),
        .allow_torch = !strcmp(config_get(c, "allow-torch"), "yes"),
        .baseline = config_get(c, "baseline"),
        .order = config_get(c, "order"),
        .ahead = strcmp(config_get(c, "ahead"), "auto") ? get_int(c, "ahead") : -1,
        .compile = config_get(c, "compile"),
        .compile_on_queue = !strcmp(config_get(c, "compile-on"), "queue"),
        .target = language_named(config_get(c, "target")),
        .server = !strcmp(config_get(c, "server"), "yes"),
        .server_idle_s = get_int(c, "server-idle"),
        .scale = !strcmp(config_get(c, "scale"), "yes"),
    };
}

static int at_least_1(int n)
{
    return n > 0 ? n : 1;
}

void config_run_options(const struct config *c, struct run_options *out)
{
    const char *profile = config_get(c, "profile-from"), *search = config_get(c, "search");

    *out = (struct run_options){
        .max_depth = strcmp(config_get(c, "depth"), "auto") ? get_int(c, "depth") : -1,
        .max_repairs = get_int(c, "repairs"),
        .patience = get_int(c, "patience"),
        .profile_from = strcmp(profile, "auto") ? get_int(c, "profile-from") : -1,
        .width = at_least_1(get_int(c, "width")),
        .seed_builtin = !strcmp(config_get(c, "seed"), "builtin"),
        .fresh = !strcmp(config_get(c, "fresh"), "yes"),
        .advance = strcmp(config_get(c, "advance"), "last") ? ADVANCE_BEST : ADVANCE_LAST,
        .search = !strcmp(search, "beam")       ? SEARCH_BEAM
                  : !strcmp(search, "restarts") ? SEARCH_RESTARTS
                                                : SEARCH_REFINE,
        .beam = at_least_1(get_int(c, "beam")),
        .restarts = at_least_1(get_int(c, "restarts")),
        .parallel_calls = at_least_1(get_int(c, "parallel-calls")),
        .floor_stop = get_int(c, "floor-stop"),
        .tune = get_int(c, "tune"),
        .memory = !strcmp(config_get(c, "memory"), "yes"),
    };
}

const char *const *config_said(const struct config *c)
{
    const char **out = arena_array(c->a, config_key_count + 1, sizeof(*out));
    size_t n = 0;

    for (size_t i = 0; i < config_key_count; i++)
        if (c->values[i].origin == ORIGIN_FLAG)
            out[n++] = config_keys[i].name;
    return out;
}
