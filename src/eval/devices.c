/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c - find and describe the device; see devices.h. */
#include "eval/devices.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/proc.h"
#include "base/seal.h"
#include "eval/child_protocol.h"
#include "eval/peaks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Long, because the first use of the driver after a boot reads it from disk. */
enum { DESCRIBE_MS = 60000, ANSWER_LIMIT = 1 << 16 };

/* Code for an earlier GPU runs on a later one, unless it is architecture-specific ('a'). */
static bool runs_code(const struct gpu *gpu, const char *arch)
{
    char *end;
    long number = strtol(arch, &end, 10);

    return *end == 'a' ? gpu->arch == number : gpu->arch >= number;
}

static bool simt_device(const char *models, const char *arch, struct arena *a, struct device *out,
                        struct error *err)
{
    const struct gpu *gpu = gpu_find(models);

    if (!gpu) {
        error_set(err, ERROR_USE, "simt cannot model the time of a %s", models);
        return error_hint(err, "GPUs it knows: %s (--simt-as NAME)", gpu_names(a));
    }
    if (!runs_code(gpu, arch)) {
        error_set(err, ERROR_USE, "simt stands in for a %s (sm_%d), which runs no code for sm_%s",
                  gpu->name, gpu->arch, arch);
        return error_hint(err, "--simt-arch 80 runs on every GPU; sm_90a is for H100 and H200, "
                               "sm_100a for B200, sm_120a for RTX 5090 (--simt-as)");
    }
    *out = (struct device){
        .kind = DEVICE_SIMT,
        .name = "simt",
        .place = "",
        .models = arena_strdup(a, gpu->name),
        .arch = arena_printf(a, "compute_%s", arch),
        .sm_count = gpu->sms,
        .smem_block_bytes = (int64_t)gpu->smem_block_kib * 1024,
        .cluster_blocks = gpu->cluster_blocks,
        .l2_bytes = (int64_t)(gpu->l2_mib * 1024 * 1024),
    };
    return true;
}

/* Hopper and later GPUs have instructions that exist only in the 'a' architecture. */
static const char *cuda_arch(int64_t arch, struct arena *a)
{
    return arena_printf(a, "sm_%d%s", (int)arch, arch >= 90 ? "a" : "");
}

static const char *why_not(enum talk_end end, const struct child *c, const struct error *why,
                           struct arena *a)
{
    const char *words = talk_last_words(c, 300, a);

    if (end == TALK_LATE)
        return arena_printf(a, "no answer within %d s", DESCRIBE_MS / 1000);
    if (end == TALK_ENDED)
        return arena_printf(a, "the process that asked the driver ended%s%s", *words ? ": " : "",
                            words);
    return why->text;
}

/* Asks the driver, through a runner: a context costs a quarter of a second. */
static bool ask_driver(const char *program, const char *name, struct arena *a, json_t **answer,
                       struct error *err)
{
    const char *argv[] = {program, NULL};
    struct error why = {0};
    struct child *c = NULL;
    enum talk_end end;

    if (!child_start(&(struct proc_spec){.argv = argv}, &c, err))
        return false;
    end = talk(c, json_pack("{s:s, s:s}", "do", "describe", "device", name), DESCRIBE_MS,
               ANSWER_LIMIT, answer, &why);
    if (end != TALK_ANSWER)
        error_set(err, ERROR_MACHINE, "the driver did not describe %s: %s", name,
                  why_not(end, c, &why, a));
    child_stop(c);
    return end == TALK_ANSWER && talk_ok(*answer, err);
}

/* Several commands starting together on a freshly booted machine would each start the driver and
 * slow each other down beyond any deadline. So they take turns, and the next may find the first
 * one's answer. NULL (a long wait, or no folder for a lock) is not a failure. */
static struct lock *my_turn(struct arena *a)
{
    const char *dir = access("/run/lock", W_OK) == 0 ? "/run/lock" : "/tmp";
    struct error ignored = {0};
    struct lock *turn = NULL;

    lock_take(arena_printf(a, "%s/cutegen-driver", dir), DESCRIBE_MS, &turn, &ignored);
    return turn;
}

/* Path of the cached answer; it is valid for this boot, driver, runner and choice of
 * devices. */
static char *kept_path(const char *program, const char *name, struct arena *a)
{
    static const char *const files[] = {"/proc/sys/kernel/random/boot_id",
                                        "/proc/driver/nvidia/version"};
    static const char *const variables[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                            "LD_LIBRARY_PATH"};
    struct error ignored = {0};
    struct hash h = hash_init();
    struct text text;
    struct stat st;
    char hex[65], *dir;

    hash_add_text(&h, text_of(name));
    hash_add_text(&h, text_of(program));
    if (stat(program, &st) != 0 || !home_runtime(a, &dir, &ignored))
        return NULL;
    hash_add(&h, &st.st_mtim, sizeof st.st_mtim);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (!file_read(files[i], ANSWER_LIMIT, a, &text, &ignored))
            return NULL; /* its owner is unknown */
        hash_add_text(&h, text);
    }
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        hash_add_text(&h, text_of(getenv(variables[i]) ? getenv(variables[i]) : ""));
    hash_hex(&h, hex);
    return arena_printf(a, "%s/device-%.16s.json", dir, hex);
}

static bool recall(const char *path, struct arena *a, json_t **answer)
{
    struct error ignored = {0};
    struct text text;

    return path && seal_load(path, path_base(path), ANSWER_LIMIT, a, &text) &&
           json_parse(text, "a device", answer, &ignored);
}

/* The driver's answer, new or cached by an earlier process. */
static bool describe(const char *program, const char *name, struct arena *a, json_t **answer,
                     struct error *err)
{
    const char *path = kept_path(program, name, a);
    struct error ignored = {0};
    struct lock *turn;
    bool ok;

    if (recall(path, a, answer))
        return true;
    turn = my_turn(a);
    ok = recall(path, a, answer) || ask_driver(program, name, a, answer, err);
    if (ok && path)
        seal_save(path, path_base(path), text_of(json_line(*answer, a)), &ignored);
    lock_drop(turn);
    return ok;
}

static bool cuda_device(const char *name, struct arena *a, struct device *out, struct error *err)
{
    json_t *answer = NULL, *d;
    char *program;
    bool ok = false;

    if (!home_program("cutegen-runner", a, &program, err))
        return false;
    if (!describe(program, name, a, &answer, err) || !json_get_object(answer, "device", &d, err))
        goto done;
    *out = (struct device){
        .kind = DEVICE_CUDA,
        .index = strchr(name, ':') ? (int)strtol(strchr(name, ':') + 1, NULL, 10) : 0,
        .name = arena_strdup(a, json_string_or(d, "name", "GPU")),
        .place = arena_strdup(a, json_string_or(d, "place", "")),
        .arch = cuda_arch(json_int_or(d, "arch", 80), a),
        .sm_count = (int)json_int_or(d, "sm_count", 1),
        .smem_block_bytes = json_int_or(d, "smem_block_bytes", 49152),
        .l2_bytes = json_int_or(d, "l2_bytes", 0),
        .memory_bytes = json_int_or(d, "memory_bytes", 0),
    };
    ok = true;
done:
    json_decref(answer);
    return ok;
}

/* A GPU of the table, in another machine. */
static bool absent_device(const char *name, struct arena *a, struct device *out, struct error *err)
{
    const struct gpu *gpu = gpu_find(name);

    if (!gpu) {
        error_set(err, ERROR_USE, "unknown GPU %s", name);
        return error_hint(err, "GPUs it knows: %s (--device for:NAME)", gpu_names(a));
    }
    *out = (struct device){
        .kind = DEVICE_CUDA,
        .name = arena_strdup(a, gpu->name),
        .place = "",
        .arch = cuda_arch(gpu->arch, a),
        .sm_count = gpu->sms,
        .smem_block_bytes = (int64_t)gpu->smem_block_kib * 1024,
        .cluster_blocks = gpu->cluster_blocks,
        .l2_bytes = (int64_t)(gpu->l2_mib * 1024 * 1024),
        .absent = true,
    };
    return true;
}

bool devices_find(const char *name, const char *models, const char *simt_arch, struct arena *a,
                  struct device *out, struct error *err)
{
    const char *arch = simt_arch ? simt_arch : "80";

    if (strcmp(name, "simt") == 0)
        return simt_device(models, arch, a, out, err);
    if (strncmp(name, "cuda", 4) == 0) {
        if (cuda_device(name, a, out, err))
            return true;
        return error_hint(err,
                          "see what is there: cutegen doctor; without a GPU use --device simt");
    }
    if (strncmp(name, "for:", 4) == 0)
        return absent_device(name + 4, a, out, err);
    if (strcmp(name, "auto") != 0) {
        error_set(err, ERROR_USE, "there is no device %s", name);
        return error_hint(err,
                          "devices: auto, simt, cuda:0, cuda:1, ...; for:H200 to build for one");
    }
    if (file_exists("/dev/nvidia0") || file_exists("/dev/nvidiactl") || file_exists("/dev/dxg")) {
        struct error why = {0};

        if (cuda_device("cuda:0", a, out, &why))
            return true;
    }
    return simt_device(models, arch, a, out, err);
}
