/* SPDX-License-Identifier: Apache-2.0 */
/* nvcc.c - a candidate as a shared object of its own, for export. */
#include "toolchain/nvcc.h"

#include "base/fs.h"
#include "base/proc.h"
#include "toolchain/diag.h"

#include <stdio.h>
#include <string.h>

enum { SOURCE_LIMIT = 4 << 20, MAX_FLAGS = 40 };

static void flags(const struct tools *tools, const struct nvcc_request *req, const char **argv)
{
    static const char *const common[] = {
        "-std=c++17", "-O3",        "-lineinfo", "--expt-relaxed-constexpr",
        "-shared",    "-Xcompiler", "-fPIC",     "-DCUTEGEN_EXPORT=1",
        "-arch"};
    int n = 0;
    argv[n++] = tools->nvcc;
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        argv[n++] = common[i];
    argv[n++] = req->arch;
    for (int i = 0; tools->includes[i] != NULL && n + 6 < MAX_FLAGS; i++) {
        if (tools->includes[i] == tools->cuda_include || tools->includes[i] == tools->cccl_include)
            continue; /* nvcc brings its own */
        argv[n++] = "-I";
        argv[n++] = tools->includes[i];
    }
    argv[n++] = "-o";
    argv[n++] = req->out_path;
    argv[n++] = req->source_path;
    argv[n] = NULL;
}

bool nvcc_shared(const struct tools *tools, const struct nvcc_request *req, struct arena *a,
                 struct verdict *verdict, struct error *err)
{
    const char *argv[MAX_FLAGS];
    struct proc_spec spec = {.argv = argv,
                             .no_network = true,
                             .merge_stderr = true,
                             .deadline_ms = req->deadline_ms,
                             .output_limit = 4 << 20,
                             .address_limit_bytes = (uint64_t)16 << 30};
    struct proc_result r;
    struct text source;

    memset(verdict, 0, sizeof *verdict);
    verdict->detail = "";
    if (tools->nvcc == NULL) {
        error_set(err, ERROR_MACHINE, "no nvcc: the shared object cannot be built");
        return error_hint(err, "install a CUDA toolkit, or name one: --cuda PATH");
    }
    if (!file_read(req->source_path, SOURCE_LIMIT, a, &source, err))
        return false;
    flags(tools, req, argv);
    if (!proc_run(&spec, a, &r, err))
        return error_add(err, "running nvcc");
    if (r.end == PROC_EXITED && r.code == 0) {
        verdict->kind = VERDICT_PASS;
        verdict->summary = "built";
    } else if (r.end == PROC_DEADLINE) {
        verdict->kind = VERDICT_COMPILE_TIMEOUT;
        verdict->summary = arena_printf(a, "nvcc was stopped after %d s", req->deadline_ms / 1000);
    } else {
        diag_compile_error(r.out, source, path_base(req->source_path), a, verdict);
    }
    return true;
}
