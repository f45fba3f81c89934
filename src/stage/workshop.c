/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workshop.c - open what the stages use: who answers, what builds, what runs.
 *
 * Opening is cheap: tools are only looked for, the oracle starts with the
 * first task and the builder with the first build. So `describe` pays no
 * compiler, and a missing one is reported before a model is asked.
 */
#include "stage/workshop.h"

#include "base/cpus.h"
#include "base/fs.h"
#include "eval/devices.h"
#include "expert/expert.h"
#include "llm/prompt/retrieve.h"
#include "toolchain/composer.h"

#include <string.h>
#include <unistd.h>

static bool open_model(struct stage *st, struct error *err)
{
    const struct settings *s = &st->settings;
    struct budget_limits limits = {.usd = s->budget_usd,
                                   .tokens = s->budget_tokens,
                                   .calls = s->budget_calls,
                                   .minutes = s->budget_minutes};
    struct llm_config config = workshop_llm_config(s);

    st->builtin = strcmp(s->model, "builtin") == 0;
    st->engineer = arena_strdup(st->a, s->model);
    if (!(s->budget_text ? budget_open_shared(s->budget_text, &limits, &st->budget, err)
                         : budget_open(s->budget_file, &limits, &st->budget, err)))
        return false;
    if (st->builtin)
        return true;
    config.budget = st->budget;
    st->book_arena = arena_new();
    return prompt_open(s->prompts, s->target, st->book_arena, &st->book, err) &&
           llm_open(&config, &st->llm, err);
}

bool stage_open(const struct settings *settings, struct stage **out, struct error *err)
{
    struct stage *st = xmalloc(sizeof(*st));
    struct tools_config config = {.cc = settings->cc,
                                  .cuda = settings->cuda,
                                  .cutlass = settings->cutlass,
                                  .python = settings->python};
    char *work_dir = NULL;

    st->a = arena_new();
    pthread_mutex_init(&st->asking, NULL);
    st->settings = *settings;
    st->torch_version = "?";
    if (!tools_find(&config, st->a, &st->tools, err) ||
        (languages[settings->target].python && !workshop_find_composer(st, err)) ||
        !devices_find(settings->device, settings->models, settings->simt_arch, st->a, &st->device,
                      err) ||
        (st->device.kind == DEVICE_SIMT && !tools_for_simt(&config, &st->tools, err)) ||
        !dir_temp("cutegen", st->a, &work_dir, err) || !open_model(st, err)) {
        st->work_dir = work_dir;
        stage_close(st);
        return false;
    }
    st->work_dir = work_dir;
    if (settings->server)
        st->warm = warm_open(&(struct warm_config){.idle_s = settings->server_idle_s});
    *out = st;
    return true;
}

void stage_close(struct stage *st)
{
    struct error ignored = {0};

    if (!st)
        return;
    oracle_stop(st->oracle);
    st->oracle = NULL;
    builder_stop(st->builder);
    for (size_t i = 0; i < MAX_PARALLEL; i++)
        builder_stop(st->more_builders[i]);
    workshop_unlease(st);
    warm_close(st->warm);
    llm_close(st->llm);
    for (size_t i = 0; i < MAX_PARALLEL; i++)
        llm_close(st->more_llms[i]);
    budget_close(st->budget);
    retrieve_close(st->retriever);
    if (st->work_dir)
        dir_remove(st->work_dir, &ignored);
    if (st->book_arena)
        arena_free(st->book_arena);
    pthread_mutex_destroy(&st->asking);
    arena_free(st->a);
    xfree(st);
}

bool workshop_llm(struct stage *st, int slot, struct llm **out, struct error *err)
{
    struct llm_config config = workshop_llm_config(&st->settings);
    struct llm **at = &st->more_llms[slot % MAX_PARALLEL];

    if (slot == 0) {
        *out = st->llm;
        return true;
    }
    config.budget = st->budget;
    if (!*at && !llm_open(&config, at, err))
        return false;
    *out = *at;
    return true;
}

int stage_parallel(const struct stage *st)
{
    return stage_may_work(st) ? MAX_PARALLEL : 1;
}

void stage_charge(struct stage *st, const struct reply *spent)
{
    int64_t prompt = spent->prompt_tokens > 0 ? spent->prompt_tokens : 0;
    int64_t output = spent->output_tokens > 0 ? spent->output_tokens : 0;

    budget_charge(st->budget, prompt + output, spent->cost_usd > 0 ? spent->cost_usd : 0);
}

bool stage_budget_unpause(const char *path, struct error *err)
{
    return budget_unpause(path, err);
}

bool stage_budget_unpause_shared(const struct shared_text *place, struct error *err)
{
    return budget_unpause_shared(place, err);
}

const char *workshop_source_name(const struct stage *st)
{
    return languages[st->settings.target].source;
}

const struct device *stage_device(const struct stage *st)
{
    return &st->device;
}

const char *stage_engineer(const struct stage *st)
{
    return st->engineer;
}

const char *stage_base_url(const struct stage *st)
{
    return st->llm ? llm_base_url(st->llm) : NULL;
}

json_t *stage_environment(const struct stage *st)
{
    json_t *j = json_object();

    json_object_set_new(j, "cutegen", json_string(CUTEGEN_VERSION));
    json_object_set_new(j, "nvrtc", json_string(st->tools.nvrtc_version));
    json_object_set_new(j, "cutlass", json_string(st->tools.cutlass_version));
    json_object_set_new(j, "cc", json_string(st->tools.cc_version ? st->tools.cc_version : "none"));
    json_object_set_new(j, "torch", json_string(st->torch_version));
    json_object_set_new(j, "device", json_string(st->device.name));
    json_object_set_new(j, "arch", json_string(st->device.arch));
    if (st->composer)
        json_object_set_new(j, languages[st->composer->language].name,
                            json_string(st->composer->version));
    if (st->device.kind == DEVICE_SIMT)
        json_object_set_new(j,
                            modelled_validated(st->device.models)
                                ? "time modelled for"
                                : "time modelled, unvalidated, for",
                            json_string(st->device.models));
    return j;
}

bool workshop_meet_task(struct stage *st, const struct task *task, struct error *err)
{
    const char *recipe = NULL, *why_not = NULL;

    (void)err;
    if (!st->builtin)
        return true;
    if (expert_can(task, st->a, &recipe, &why_not))
        st->engineer = arena_printf(st->a, "builtin, recipe %s", recipe);
    else
        st->engineer = "builtin";
    return true;
}

/* Precompiling a kernel for its next edit takes a core: only where there is one to spare. */
static int learn_ms(void)
{
    enum { CORES = 4, WORTH_MS = 3000 };

    return cpus_usable() >= CORES ? WORTH_MS : 0;
}

bool stage_warm(struct stage *st, struct error *err)
{
    struct builder_config config = {.tools = &st->tools,
                                    .warm_arch = st->device.arch,
                                    .learn_ms = learn_ms(),
                                    .share = st->settings.kernels,
                                    .source = workshop_source(st)};

    if (languages[st->settings.target].python) /* no kernel of it needs NVRTC */
        return true;
    return st->builder || builder_start(&config, &st->builder, err);
}

bool workshop_builder(struct stage *st, size_t number, struct builder **out, struct error *err)
{
    /* Learning a kernel for its next edit takes memory: the first one does that for all. */
    struct builder_config config = {.tools = &st->tools,
                                    .warm_arch = st->device.arch,
                                    .share = st->settings.kernels,
                                    .source = workshop_source(st)};
    struct builder **at = number ? &st->more_builders[number] : &st->builder;

    if (number == 0 && !stage_warm(st, err))
        return false;
    if (!*at && !builder_start(&config, at, err))
        return false;
    *out = *at;
    return true;
}

struct judge_config workshop_judge_config(const struct stage *st, const struct task *task)
{
    return (struct judge_config){
        .device = &st->device,
        .oracle = st->oracle,
        .task = task,
        .draws = st->settings.draws,
        .check = st->settings.check,
        .python = st->settings.python,
        .compiled_name = workshop_source_name(st),
        .source_name = workshop_source_name(st),
        .run_ms = st->settings.run_deadline_s * 1000,
        .source = workshop_source(st),
        .baselines = st->baselines[0] ? st->baselines : NULL,
        .sanitizer = st->device.kind == DEVICE_CUDA && (st->settings.look || st->settings.accept)
                         ? st->tools.sanitizer
                         : NULL,
    };
}

/* The seam asks a few times a second whether the call shall end. */
static bool call_interrupted(void *ctx)
{
    const struct settings *s = ctx;

    return s->interrupts && *s->interrupts >= s->interrupts_cut_call;
}

struct llm_config workshop_llm_config(const struct settings *s)
{
    struct llm_config c = llm_config_default();

    c.model = s->model;
    c.base_url = s->base_url;
    c.key_env = s->key_env;
    c.key_file = s->key_file;
    c.effort = s->effort;
    c.ca_file = s->ca_file;
    c.proxy = s->proxy;
    c.price_file = s->price_file;
    c.temperature = s->temperature;
    c.record_file = s->record;
    if (s->max_tokens)
        c.max_output_tokens = s->max_tokens;
    if (s->call_deadline_s)
        c.total_ms = s->call_deadline_s * 1000;
    if (s->stall_s)
        c.stall_ms = s->stall_s * 1000;
    c.interrupted = call_interrupted;
    c.interrupted_ctx = (void *)(uintptr_t)s;
    return c;
}
