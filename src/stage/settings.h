/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h - the settings, from flags, environment, cutegen.ini and defaults.
 *
 * config.c fills it; the loop and the stages read it. Strings live as long
 * as the command.
 */
#ifndef STAGE_SETTINGS_H
#define STAGE_SETTINGS_H

#include "model.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct settings {
    const char *model;     /* "builtin", "openai:...", "replay:FILE", ... */
    const char *device;    /* "auto", "simt", "cuda:0" */
    const char *models;    /* GPU whose time simt models: "H200" */
    const char *simt_arch; /* what simt's code is built for: "80", "90a" */
    const char *python;    /* NULL: found */
    const char *cc;        /* NULL: found */
    const char *cuda;      /* toolkit root; NULL: found */
    const char *cutlass;   /* include folder; NULL: found */
    const char *example;   /* worked example in prompts: "none" "other" "best" */
    const char *prompts;   /* folder; NULL: the product's own */
    const char *runs_dir;
    const char *store_url;                              /* "": store.db in that folder */
    const char *base_url, *key_env, *key_file, *effort; /* model seam; may be NULL */
    const char *ca_file, *proxy, *price_file;           /* likewise */
    const char *record;                                 /* transcript to write; may be NULL */
    double temperature;                                 /* < 0: the provider's default */
    int max_tokens;
    double budget_usd; /* 0: none; the same for the next three */
    int64_t budget_tokens;
    int budget_calls, budget_minutes;
    const char *budget_file;               /* shared by the runs of a suite; NULL: this run's own */
    const struct shared_text *budget_text; /* used instead of the file if they share no folder */
    const struct shared_files *kernels;    /* kernels compiled on other machines; NULL: none */
    bool compile_on_queue; /* let workers that take compile jobs compile, while there are any */
    bool all_baselines;    /* eval: time a kernel that passes again, together with all baselines */
    int64_t job;           /* the queue job that this run belongs to; 0: none */
    const char *check;     /* simt: "off" "memory" "full" */
    int draws;             /* input draws per test */
    int build_deadline_s, run_deadline_s, call_deadline_s, stall_s;
    int task_deadline_s, task_memory_mib; /* import of a task file; its oracle's memory, 0: auto */
    const char *const *set; /* "N=512" overrides of task constants, NULL-terminated; may be NULL */
    /* "BATCH=1,8,64": judge at all these sizes; NULL-terminated, may be NULL */
    const char *const *shapes;
    bool backward;          /* the task's gradients are judged (also BACKWARD = True in the task) */
    enum language target;   /* what kernels are written in */
    const char *dsl_python; /* that has the CuTe DSL; NULL: python */
    bool server;            /* builders and oracles from the warm server */
    int server_idle_s;      /* the server ends after this long without a client */
    bool scale;             /* reduce sizes on simt (default) */
    /* How often Ctrl-C was pressed, and from which count on a model call is aborted; NULL:
     * never. */
    const volatile sig_atomic_t *interrupts;
    int interrupts_cut_call;
    bool look;            /* CUDA: a failure is explained by compute-sanitizer */
    bool profile;         /* eval: a kernel that passes is profiled */
    bool accept;          /* a kernel that passes goes through every checker */
    bool task_network;    /* a task may connect to the Internet */
    bool trust;           /* a ModelNew runs also where it cannot be confined */
    bool allow_torch;     /* a foreign candidate may leave work to torch's operators */
    int ahead;            /* kernels of a ladder compiled at a time, ahead; < 0: by cores, memory */
    const char *order;    /* of the built-in engineer: "auto" "steps" "predicted"; NULL: auto */
    const char *baseline; /* PyTorch's arithmetic: "defaults" "strict" "tf32"; NULL: defaults */
    const char *compile;  /* torch.compile as a baseline: "none" "default" "max-autotune" */
};

#endif
