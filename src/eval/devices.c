/* devices.c - find and describe the device; see devices.h. */
#include "eval/devices.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "eval/peaks.h"
#include "eval/talk.h"

#include <stdlib.h>
#include <string.h>

enum { DESCRIBE_MS = 20000, ANSWER_LIMIT = 1 << 16 };

static bool simt_device(const char *models, const char *arch, struct arena *a, struct device *out,
                        struct error *err)
{
    const struct gpu *gpu = gpu_find(models);

    if (!gpu) {
        error_set(err, ERROR_USE, "simt cannot model the time of a %s", models);
        return error_hint(err, "GPUs it knows: H200, H100, A100, RTX 4090 (--models NAME)");
    }
    if (strcmp(arch, "90a") == 0 && gpu->smem_block_kib < 227) {
        error_set(err, ERROR_USE, "simt stands in for a %s, which has no sm_90a", gpu->name);
        return error_hint(err, "--simt-arch 80, or --simt-as H200");
    }
    *out = (struct device){
        .kind = DEVICE_SIMT,
        .name = "simt",
        .place = "",
        .models = arena_strdup(a, gpu->name),
        .arch = arena_printf(a, "compute_%s", arch),
        .sm_count = gpu->sms,
        .smem_block_bytes = (int64_t)gpu->smem_block_kib * 1024,
        .l2_bytes = (int64_t)(gpu->l2_mib * 1024 * 1024),
    };
    return true;
}

/* Hopper and later have instructions of their own only in the 'a' form. */
static const char *cuda_arch(int64_t arch, struct arena *a)
{
    return arena_printf(a, "sm_%d%s", (int)arch, arch >= 90 ? "a" : "");
}

static bool cuda_device(const char *name, struct arena *a, struct device *out, struct error *err)
{
    const char *argv[] = {NULL, NULL};
    json_t *answer = NULL, *d;
    struct error why = {0};
    struct child *c = NULL;
    char *program;
    bool ok = false;

    if (!home_program("cutegen-runner", a, &program, err))
        return false;
    argv[0] = program;
    if (!child_start(&(struct proc_spec){.argv = argv}, &c, err))
        return false;
    if (talk(c, json_pack("{s:s, s:s}", "do", "describe", "device", name), DESCRIBE_MS,
             ANSWER_LIMIT, &answer, &why) != TALK_ANSWER) {
        error_set(err, ERROR_MACHINE, "the driver did not describe %s: %s", name,
                  *why.text ? why.text : talk_last_words(c, 300, a));
        goto done;
    }
    if (!talk_ok(answer, err) || !json_get_object(answer, "device", &d, err))
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
    child_stop(c);
    return ok;
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
    if (strcmp(name, "auto") != 0) {
        error_set(err, ERROR_USE, "no device is called %s", name);
        return error_hint(err, "devices: auto, simt, cuda:0, cuda:1, ...");
    }
    if (file_exists("/dev/nvidia0") || file_exists("/dev/nvidiactl") || file_exists("/dev/dxg")) {
        struct error why = {0};

        if (cuda_device("cuda:0", a, out, &why))
            return true;
    }
    return simt_device(models, arch, a, out, err);
}
