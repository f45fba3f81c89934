/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the command table, and the one place that prints errors and exits.
 *
 * Exit codes: 0 success, 1 what was judged failed, 2 wrong use, 3 the machine lacks something, 4 a
 * budget ran out, 5 a reply without edits, 130 interrupted.
 */
#include "base/log.h"
#include "base/vault.h"
#include "cli/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct flag no_flags[] = {{0}};
static const struct flag run_flags[] = {
    {"no-report", NULL, "do not write report.html at the end"},
    {"suite", "NAME", "the suite this run belongs to; its runs share one budget"},
    {"job", "N", "the queue job this run belongs to; set by a worker"},
    {0},
};
static const struct flag build_flags[] = {
    {"depth", "N", "the first kernel and this many more; default: all known ones"},
    {"out", "DIR",
     "also write the kernels there: NAME.cu, .cubin, and .json to launch it; then NAME~1.cu, ..."},
    {0},
};
static const struct flag tune_flags[] = {
    {"no-report", NULL, "do not write report.html at the end"},
    {0},
};
static const struct flag suite_flags[] = {
    {"jobs", "N", "runs at a time; default: 1"},
    {"resume", "SUITE", "go on with a suite that was stopped or killed; `last` is the newest"},
    {"workers", "WHO",
     "let workers run it: local:N, slurm:N[,OPTION=VALUE...], none (docs/cluster.md)"},
    {"builders", "WHO",
     "let other workers compile for them, written like --workers: CPU nodes compile, GPU nodes "
     "judge"},
    {"require", "DEVICE",
     "only workers with that device: simt, cuda, cuda:NAME; then ,arch=90 ,memory=GIB"},
    {"priority", "N", "a suite with a higher priority goes first; default: 0"},
    {0},
};
static const struct flag queue_add_flags[] = {
    {"wait", NULL, "wait until it has ended and show its result"},
    {"again", NULL,
     "run it again even if the same job was asked for before; default: reuse its result"},
    {"require", "DEVICE",
     "only workers with that device: simt, cuda, cuda:NAME; then ,arch=90 ,memory=GIB"},
    {"priority", "N", "a job with a higher priority goes first; default: 0"},
    {0},
};
static const struct flag queue_wait_flags[] = {
    {"output", "DIR", "for an export: write the files there"},
    {0},
};
static const struct flag compile_flags[] = {
    {"arch", "ARCH", "architecture to compile for; default: sm_90a"},
    {0},
};
static const struct flag worker_flags[] = {
    {"suite", "NAME", "only tasks of that suite"},
    {"once", NULL, "do one task, then end"},
    {"idle-exit", "SECONDS", "end after this long without a task; default: never"},
    {"tasks", "DIR", "take only tasks below that folder; default: the current folder"},
    {"gpu", "NAME",
     "the name by which jobs ask for this machine's GPU; default: its own name, such as H200"},
    {"take", "WORK", "judge, compile, or both; default: judge with a GPU, both without"},
    {"lease", "SECONDS",
     "others take over its task after this long without a heartbeat; default: 60"},
    {0},
};
static const struct flag report_flags[] = {
    {"output", "FILE", "write the page here; default: report.html in the folder of the first run"},
    {0},
};
static const struct flag show_flags[] = {
    {"attempt", "N", "one attempt: its evidence, and the compiler's or the judge's messages"},
    {"source", NULL, "only the kernel's source: that attempt's, or the best one's"},
    {"calls", NULL, "the model calls with prompts and replies"},
    {0},
};
static const struct flag runs_flags[] = {
    {"suite", "NAME", "only the runs of that suite"},
    {"limit", "N", "how many, newest first; 0: all; default: 100"},
    {0},
};
static const struct flag prune_flags[] = {
    {"older-than", "DAYS", "runs that ended at least this long ago"},
    {"dry-run", NULL, "only say how many there are"},
    {0},
};
static const struct flag upgrade_flags[] = {
    {"no-backup", NULL, "do not run pg_dump: the database is already backed up by other means"},
    {0},
};
static const struct flag live_flags[] = {
    {"port", "N", "listen here; default: any free port"},
    {0},
};
static const struct flag mcp_flags[] = {
    {"http", NULL, "over HTTP on this machine, with a token, instead of stdin and stdout"},
    {"port", "N", "with --http: listen here; default: any free port"},
    {"root", "DIR", "tools read files below this folder only; default: every file you may read"},
    {0},
};
static const struct flag agent_flags[] = {
    {"claude", NULL, "Claude Code: .mcp.json and .claude/skills/cutegen"},
    {"codex", NULL, "Codex: .codex/config.toml and .agents/skills/cutegen"},
    {"cursor", NULL, "Cursor: .cursor/mcp.json and .cursor/skills/cutegen"},
    {"print", NULL, "only show what would be written"},
    {"remove", NULL, "remove what an earlier install wrote"},
    {0},
};
static const struct flag search_flags[] = {
    {"max", "N", "passages of headers at most, up to 10; default: 4"},
    {0},
};
static const struct flag eval_flags[] = {
    {"format", "FORMAT", "text, json, or github (workflow commands); default: text"},
    {"profile", NULL, "also profile a kernel that passes"},
    {"all-baselines", NULL, "if the kernel passes, time it again, interleaved with every baseline"},
    {"job", "N", "the queue job this verdict is for; set by a worker"},
    {"events", NULL, "with --json: a line per step before the verdict"},
    {0},
};
static const struct flag export_flags[] = {
    {"output", "DIR", "write the files here; default: export/ in the run's folder"},
    {"layout", "LAYOUT",
     "folder, wheel (pip install) or hf (Hugging Face kernels); default: folder"},
    {"wheel", NULL, "the same as --layout wheel"},
    {"fallback", NULL,
     "ModelNew falls back to Model, with a warning, for inputs that were not judged"},
    {"gradients", "HOW",
     "reference: those of Model, computed anew; none: an error; RUN: the kernel of that run, made "
     "with --backward; default: reference"},
    {"ptx", NULL,
     "also for GPUs of other architectures, whose driver compiles it; it is not judged there"},
    {"force", NULL, "also export a kernel that was not accepted; the record says so"},
    {0},
};
static const struct flag simt_flags[] = {
    {"input", "SPEC", "an input tensor, in order: f32[16,128]=normal; may be given again"},
    {"output", "SPEC", "an output tensor, in order: f32[16,128]; may be given again"},
    {"case", "N", "for an exported folder: which of its judged shapes; default: 0"},
    {"scalar", "SPEC", "a scalar of the call, in order: int=3, float=1.5; may be given again"},
    {"profile", NULL,
     "write a page by source line: what bounds the kernel, where, and what to try"},
    {"sample", "BLOCKS", "run only this many blocks of each grid and scale the counters"},
    {0},
};
static const struct flag exec_flags[] = {
    {"format", "FORMAT", "format of the report at the end: text, json or sarif; default: text"},
    {"output", "FILE", "file for json and sarif; default: stdout, after the program's own output"},
    {0},
};
static const struct flag peaks_flags[] = {
    {"show", NULL, "only print what is known; measure nothing"},
    {0},
};
static const struct flag edit_flags[] = {
    {"write", NULL, "overwrite SRC with the result instead of printing it"},
    {0},
};
static const struct flag prompt_flags[] = {
    {"stage", "STAGE", "synthesize, diagnose, repair or optimize; default: synthesize"},
    {"kernel", "FILE.cu", "the kernel to diagnose, repair or optimize"},
    {"judged", "FILE", "file with its verdict, from `eval --json`; default: placeholder words"},
    {0},
};

enum {
    JUDGING = GROUP_JUDGING,
};

const struct command commands[] = {
    {"run", "TASK.py", 1, 1, GROUP_ALL, true, true, run_flags, cmd_run,
     "the loop: from a module to the best verified kernel",
     "Writes a first kernel, builds it, tests it against PyTorch, repairs it, then makes it faster "
     "one\n"
     "change at a time. Every attempt is in the store before the next begins. Ctrl-C finishes the\n"
     "attempt and stops, a second one stops at once; `cutegen resume RUN` continues.\n"
     "\n"
     "    cutegen run examples/swish.py\n"
     "    cutegen run task.py --model anthropic:MODEL --budget-usd 5\n"
     "    cutegen run task.py --model replay:transcript.jsonl\n"
     "\n"
     "Exit codes: 0 a correct kernel was found, 1 none was, 4 a budget ran out first."},
    {"resume", "RUN", 1, 1, GROUP_ALL, true, true, run_flags, cmd_resume,
     "continue a run that was stopped or killed", ""},
    {"suite", "DIR|LIST", 0, 1, GROUP_ALL, true, true, suite_flags, cmd_suite,
     "many tasks, one budget: a table, a CSV file and a page",
     "DIR: every .py file with a class Model in it, or in its folders (a KernelBench checkout's\n"
     "level folders as they are). LIST: a file with one path per line. All flags of `run` apply "
     "for\n"
     "every task; budgets are shared by all. Runs take turns on a GPU, so timings never overlap.\n"
     "Ctrl-C starts no further task and waits for running ones; a second one stops them at once.\n"
     "\n"
     "    cutegen suite examples --jobs 2\n"
     "    cutegen suite KernelBench/level1 --model anthropic:MODEL --budget-usd 50\n"
     "    cutegen suite --resume last"},
    {"worker", "", 0, 0, GROUP_ALL, true, true, worker_flags, cmd_worker,
     "run jobs from the store's queue until stopped: tasks of suites, and others",
     "Claims a job, runs it here, claims the next. A job whose worker is lost is claimed by "
     "another\n"
     "and goes on where it was. SIGTERM (Slurm's way to end a job) gives it back.\n"
     "\n"
     "    cutegen worker --store postgres://db.example/cutegen\n"
     "    cutegen worker --idle-exit 60"},
    {"queue add", "KIND WHAT...", 2, CLI_MAX_WORDS, GROUP_ALL, true, true, queue_add_flags,
     cmd_queue_add, "put a job into the queue, for a worker to do",
     "    cutegen queue add run TASK.py...            the loop on a task\n"
     "    cutegen queue add eval TASK.py FILE...      a verdict on each candidate\n"
     "    cutegen queue add measure RUN...            its best kernel again, beside all baselines\n"
     "    cutegen queue add profile RUN...            likewise, with a profile\n"
     "    cutegen queue add export RUN...             likewise; `queue wait --output` writes it\n"
     "\n"
     "Asking twice for the same makes one job and reuses its result (--again: judged anew).\n"
     "Exit code 1 with --wait: one of them did not pass."},
    {"queue wait", "JOB...", 1, CLI_MAX_WORDS, GROUP_ALL, true, true, queue_wait_flags,
     cmd_queue_wait, "wait for jobs and show their results",
     "Exit code 1: one of them did not pass."},
    {"queue list", "", 0, 0, GROUP_STORE, true, false, no_flags, cmd_queue_list,
     "the newest single jobs, as added with `queue add`, with their results", ""},
    {"queue cancel", "JOB...", 1, CLI_MAX_WORDS, GROUP_STORE, true, false, no_flags,
     cmd_queue_cancel, "remove waiting jobs from the queue",
     "Exit code 1: one of them is running or has ended."},
    {"top", "", 0, 0, GROUP_STORE, true, false, no_flags, cmd_top, "the queue and its workers", ""},
    {"store copy", "FROM TO", 2, 2, GROUP_STORE, true, false, no_flags, cmd_store_copy,
     "copy all runs from one store into another",
     "FROM and TO are folders of runs or addresses of servers. Runs that are there already stay as "
     "they\n"
     "are; reports of the copies are the same, byte for byte.\n"
     "\n"
     "    cutegen store copy runs postgres://db.example/cutegen"},
    {"store check", "", 0, 0, GROUP_STORE, true, false, no_flags, cmd_store_check,
     "check the store for damage: texts against their hashes, rows against each other",
     "Exit code 1: damage was found."},
    {"store prune", "", 0, 0, GROUP_STORE, true, false, prune_flags, cmd_store_prune,
     "remove prompts, replies, logs and all but the best kernels of old runs",
     "Verdicts, times and costs stay, and so do the best kernel of each run and every attempt that "
     "was\n"
     "exported, with all that belongs to them. A pruned run cannot be resumed.\n"
     "\n"
     "    cutegen store prune --older-than 90 --dry-run"},
    {"store upgrade", "", 0, 0, GROUP_STORE, true, false, upgrade_flags, cmd_store_upgrade,
     "bring the tables on a server to this version, after a backup with pg_dump",
     "A SQLite file needs no command: it is copied to store.db.vN and changed when it is opened."},
    {"tune", "TASK.py KERNEL.cu", 2, 2, JUDGING | GROUP_LOOP, true, true, tune_flags, cmd_tune,
     "search for the best values of a kernel's tunables",
     "Judges KERNEL.cu, then other values of what it declares with CUTEGEN_TUNE, nearest first, "
     "as\n"
     "many as --tune says. `cutegen show RUN --source` prints the best, `cutegen export RUN` ships "
     "it.\n"
     "`cutegen run` does the same with its best kernel."},
    {"build", "TASK.py...", 1, CLI_MAX_WORDS, GROUP_DEVICE | GROUP_TOOLS, true, true, build_flags,
     cmd_build, "compile the built-in engineer's kernels for a GPU that this machine need not have",
     "Describes each task at full size without allocating its tensors, and compiles the kernels "
     "that\n"
     "`run` would begin with. They are kept in the cache. Copy the cache folder, seal.key "
     "included,\n"
     "to the machine with the GPU (or set CUTEGEN_CACHE to it there): with the same versions of "
     "NVRTC\n"
     "and CUTLASS, `run`, `suite` and `eval` find them and compile nothing.\n"
     "\n"
     "    cutegen build examples/softmax.py --device for:H200\n"
     "\n"
     "Exit code 1: a task has no kernel, or one that does not compile."},
    {"compile", "FILE.cu [KERNEL...]", 1, CLI_MAX_WORDS, JUDGING, true, true, compile_flags,
     cmd_compile, "compile device code into the kernel caches, for later judging",
     "KERNEL: an instantiation, as a launch names it. On a store for many machines all of them "
     "find "
     "it.\n"
     "\n"
     "    cutegen compile gemm.cu 'gemm<128, 128, 16>' --arch sm_90a"},
    {"eval", "TASK.py FILE|RUN", 1, 2, JUDGING, true, true, eval_flags, cmd_eval,
     "judge one candidate",
     "Builds FILE.cu, runs it on fresh inputs, compares with PyTorch and float64, and times it.\n"
     "FILE may also be a Python file with a class ModelNew, as KernelBench has them: it is judged\n"
     "in a process of its own, by the same protocol where it applies.\n"
     "With only the name of a run, its best kernel is judged again.\n"
     "Exit code 0: pass; 1: any other verdict."},
    {"watch", "TASK.py FILE", 2, 2, JUDGING, true, true, no_flags, cmd_watch,
     "judge a kernel again whenever it or its task is saved",
     "Shows the last verdict, the time and what changed since the previous one. Ctrl-C ends it."},
    {"describe", "TASK.py", 1, 1, GROUP_DEVICE | GROUP_TOOLS, true, false, no_flags, cmd_describe,
     "what the task is: operators, shapes, class, unavoidable bytes and flops", ""},
    {"report", "RUN...", 1, CLI_MAX_WORDS, GROUP_STORE, true, false, report_flags, cmd_report,
     "one HTML page about one run, or comparing several", "RUN may be `last`."},
    {"runs", "", 0, 0, GROUP_STORE, true, false, runs_flags, cmd_runs,
     "the runs in the store, newest first", ""},
    {"live", "", 0, 0, GROUP_STORE, true, true, live_flags, cmd_live,
     "a page of running suites and runs, on this machine",
     "Prints an address with a token; open it in a browser on this machine. The page updates by\n"
     "itself and only reads. Nothing is shown without the token. Ctrl-C ends it."},
    {"mcp", "", 0, 0, GROUP_ALL, true, false, mcp_flags, cmd_mcp,
     "the judge as tools for coding agents: a Model Context Protocol server",
     "Speaks the protocol (revisions 2025-06-18, 2025-11-25 and 2026-07-28) on stdin and stdout, "
     "or\n"
     "with --http at an address on this machine that it prints. Flags hold for whatever the tools "
     "do.\n"
     "docs/mcp.md lists tools, resources and prompts."},
    {"agent install", "", 0, 0, 0, true, false, agent_flags, cmd_agent_install,
     "install the MCP entry and a skill for a coding agent in this project's folder",
     "Shows each file as it will be, then writes it. Existing content of a file stays;\n"
     "a file for which that is impossible is named, and nothing is written. Running it\n"
     "again changes nothing."},
    {"search", "WORDS...", 1, CLI_MAX_WORDS, GROUP_DEVICE | GROUP_TOOLS, true, false, search_flags,
     cmd_search, "search CuTe's declarations and the guides",
     "WORDS may be a pasted compile error. Exit code 1: nothing was found."},
    {"show", "RUN", 1, 1, GROUP_STORE, true, false, show_flags, cmd_show,
     "a run: its attempts, verdicts and times", "RUN may be `last`."},
    {"export", "RUN", 1, 1, JUDGING, true, false, export_flags, cmd_export,
     "the best kernel as files to use: the judged code, its launch list, a ModelNew",
     "RUN may be `last`. The export holds the very code that was judged, for the shapes it was "
     "judged\n"
     "at; nothing is compiled. With --device, --set or --no-scale it is judged there first:\n"
     "\n"
     "    cutegen export last --output swish\n"
     "    cutegen export last --device cuda:0 --output swish      judged at full size on that GPU"},
    {"verify", "EXPORT", 1, 1, JUDGING, true, true, no_flags, cmd_verify,
     "check that an exported folder is what was judged: hashes, source, verdict",
     "Compares the hash of every file with the record, builds the source again for the device it "
     "was\n"
     "judged on, compares code and launch list, and judges the exported code on this machine.\n"
     "Exit code 1: something differs, or the verdict is not pass; 3: nothing differs, but this "
     "machine\n"
     "could neither build the code again (other compilers) nor judge it (no such device)."},
    {"simt run", "FILE.cu|EXPORT", 1, 1, GROUP_DEVICE | GROUP_TOOLS, true, false, simt_flags,
     cmd_simt_run, "run a kernel by hand on the CPU: findings, counters, modelled time",
     "    cutegen simt run swish.cu --input f32[1024]=normal --output f32[1024]\n"
     "An input may be read from a file of raw bytes, an output written to one: f32[1024]=@FILE.\n"
     "An exported folder that was judged on simt runs its judged code, at the judged shapes."},
    {"simt exec", "-- PROGRAM [ARG...]", 1, CLI_MAX_WORDS, GROUP_DEVICE, false, false, exec_flags,
     cmd_simt_exec, "run a CUDA program without a GPU: simt is its device and checks its kernels",
     "    nvcc -lineinfo -o app app.cu && cutegen simt exec -- ./app\n"
     "    cutegen simt exec --format sarif --output simt.sarif -- ./app --size 64\n"
     "Findings are on stderr as they happen. --simt-as chooses the GPU it stands in for, --check\n"
     "what is checked. Exit codes: 1 there were findings; 3 a kernel could not be run; otherwise\n"
     "the program's own (128 and the signal's number where one ended it)."},
    {"edit apply", "SRC REPLY", 2, 2, 0, true, false, edit_flags, cmd_edit_apply,
     "apply a model's reply to a file, whole or not at all",
     "REPLY may be - for stdin. Exit codes: 0 applied; 1 the edits do not apply, nothing was "
     "changed;\n"
     "5 the reply holds no edit."},
    {"ask", "[PROMPT...]", 0, CLI_MAX_WORDS, GROUP_MODEL, true, true, no_flags, cmd_ask,
     "send one prompt to the model; without words it is read from stdin", ""},
    {"models", "", 0, 0, GROUP_MODEL, true, false, no_flags, cmd_models,
     "the providers, and which of them have a key", ""},
    {"prompt", "TASK.py", 1, 1, GROUP_ALL, true, false, prompt_flags, cmd_prompt,
     "print what would be sent to a model for a task, without sending it",
     "Includes what other runs of its class learnt on this device, if the store has any;\n"
     "--no-memory leaves that out, as it does in a run."},
    {"server status", "", 0, 0, 0, true, false, no_flags, cmd_server_status,
     "list what the warm server holds: builders, oracles, who uses them", ""},
    {"server stop", "", 0, 0, 0, true, false, no_flags, cmd_server_stop,
     "stop the warm server once everything it lent is returned", ""},
    {"doctor", "", 0, 0, GROUP_ALL, true, false, no_flags, cmd_doctor,
     "what this machine has: compilers, CuTe, PyTorch, GPUs, profilers, models",
     "Exit code 3: something that `cutegen run` needs is missing."},
    {"peaks", "", 0, 0, GROUP_DEVICE | GROUP_TOOLS, true, false, peaks_flags, cmd_peaks,
     "the device's peak bandwidth and flops, and the time of a launch",
     "On a GPU the figures are measured in about ten seconds and kept for this device;\n"
     "rooflines and floors use them from then on. On simt the table of the modelled\n"
     "GPU is shown."},
    {"config", "", 0, 0, GROUP_ALL, true, false, no_flags, cmd_config,
     "the effective settings, and where each came from",
     "Flags override CUTEGEN_* variables, those override ./cutegen.ini, that overrides\n"
     "~/.config/cutegen/cutegen.ini, and that the defaults."},
    {"help", "[COMMAND]", 0, 2, 0, false, false, no_flags, cmd_help,
     "this list, or help on one command", ""},
    {"version", "", 0, 0, 0, true, false, no_flags, cmd_version, "the version", ""},
    {0},
};

const struct command *command_find(const char *name, const char *next)
{
    for (const struct command *c = commands; c->name; c++) {
        const char *space = strchr(c->name, ' ');
        size_t len = space ? (size_t)(space - c->name) : strlen(c->name);

        if (strlen(name) != len || strncmp(name, c->name, len))
            continue;
        if (!space || (next && !strcmp(next, space + 1)))
            return c;
    }
    return NULL;
}

static int report_error(const struct cli *cli, struct error *err)
{
    vault_scrub_in_place(err->text, strlen(err->text));
    vault_scrub_in_place(err->hint, strlen(err->hint));
    fflush(stdout);
    if (cli->json)
        print_json(json_pack("{s:{s:s, s:o, s:o, s:i}}", "error", "kind",
                             error_kind_name(err->kind), "text", json_from_string(err->text),
                             "hint", json_from_string(err->hint), "exit", error_exit_code(err)));
    fputs("cutegen: ", stderr);
    print_wrapped(stderr, err->text, strlen(err->text), 9, 2);
    if (err->hint[0]) {
        fputs("  ", stderr);
        print_wrapped(stderr, err->hint, strlen(err->hint), 2, 2);
    }
    return error_exit_code(err);
}

static bool unknown_command(const char *name, struct error *err)
{
    const char *names[64], *near;
    size_t count = 0;

    for (const struct command *c = commands; c->name; c++) {
        const char *space = strchr(c->name, ' ');

        if (space && !strncmp(c->name, name, (size_t)(space - c->name)) &&
            strlen(name) == (size_t)(space - c->name)) {
            error_set(err, ERROR_USE, "cutegen %s needs a subcommand", name);
            return error_hint(err, "use: cutegen %s %s", c->name, c->words);
        }
        names[count++] = c->name;
    }
    near = nearest_name(name, names, count);
    error_set(err, ERROR_USE, "cutegen has no command '%s'", name);
    if (near)
        return error_hint(err, "did you mean `cutegen %s`? `cutegen help` lists them all", near);
    return error_hint(err, "`cutegen help` lists them all");
}

/* A closed stream stays unusable, but what is opened next does not get its number: prints would go
 * into a file of ours. */
static void occupy_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* What every process of ours inherits. A lower soft limit is raised as far as it may be: what fails
 * by it could pass for a kernel's fault. */
static bool raise_limits(struct error *err)
{
    static const struct {
        int what;
        rlim_t wanted, least;
        const char *name, *flag, *unit;
        int shift; /* of the unit: ulimit counts stacks in KiB */
    } limits[] = {{RLIMIT_NOFILE, 1024, 256, "open files", "-n", "", 0},
                  {RLIMIT_STACK, 8 << 20, 1 << 20, "a stack", "-s", " KiB", 10}};

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit r;

        if (getrlimit((unsigned)limits[i].what, &r) != 0 || r.rlim_cur >= limits[i].wanted)
            continue;
        r.rlim_cur = r.rlim_max < limits[i].wanted ? r.rlim_max : limits[i].wanted;
        (void)setrlimit((unsigned)limits[i].what, &r);
        if (r.rlim_cur >= limits[i].least)
            continue;
        error_set(err, ERROR_MACHINE, "the limit of %s is %llu%s; at least %llu are needed",
                  limits[i].name, (unsigned long long)r.rlim_cur >> limits[i].shift, limits[i].unit,
                  (unsigned long long)limits[i].least >> limits[i].shift);
        return error_hint(err,
                          "start a shell with a higher one (ulimit %s %llu; the hard limit is "
                          "root's to raise: limits.conf(5))",
                          limits[i].flag, (unsigned long long)limits[i].wanted >> limits[i].shift);
    }
    return true;
}

/* Finds the command, reads flags and configuration, runs it. */
static bool dispatch(struct cli *cli, int argc, char **argv, int *code, struct error *err)
{
    int skip = 1;

    cli->command = command_find(argv[1], argv[2]);
    if (!cli->command)
        return unknown_command(argv[1], err);
    if (strchr(cli->command->name, ' '))
        skip = 2;
    /* Looked for before the flags are read, so that a wrong flag is reported as JSON too. */
    for (int i = 2; cli->command->json && i < argc && strcmp(argv[i], "--"); i++)
        cli->json = cli->json || !strcmp(argv[i], "--json");
    cli->config = config_new(cli->a);
    /* Help must work with a broken cutegen.ini. */
    if (cli->command->groups && !config_load(cli->config, err))
        return false;
    if (!flags_parse(cli, argc - skip, argv + skip, err))
        return false;
    if (!cli->command) /* --help has been printed */
        return true;
    if (!raise_limits(err))
        return false;
    config_settings(cli->config, &cli->settings);
    if (cli->command->signals) {
        /* After the first Ctrl-C a call under way may finish: it is already paid for. */
        cli->settings.interrupts = &loop_interrupts;
        cli->settings.interrupts_cut_call = 2;
        interrupts_catch();
    }
    return cli->command->run(cli, code, err);
}

/* `cutegen help | head`: a reader that closes the pipe early is not our failure. */
static bool reader_left(void)
{
    struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};

    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct cli cli = {.a = arena_new()};
    int code = EXIT_DONE;

    occupy_streams();
    vault_open(); /* before anything is started or read */
    log_set_put(print_log, NULL);
    setlocale(LC_CTYPE, "");
    cli.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    cli.colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && getenv("TERM") &&
                 strcmp(getenv("TERM"), "dumb");
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        help_all(stderr);
        code = EXIT_USE;
    } else if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("cutegen %s\n", CUTEGEN_VERSION);
    } else if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        help_all(stdout);
    } else if (!dispatch(&cli, argc, argv, &code, &err)) {
        code = report_error(&cli, &err);
    }
    if ((fflush(stdout) || ferror(stdout)) && !reader_left()) {
        fprintf(stderr, "cutegen: cannot write to stdout\n");
        code = code ? code : EXIT_MACHINE;
    }
    arena_free(cli.a);
    return code;
}
