/*
 * fake_child.c - an oracle and a runner that misbehave on demand.
 *
 * As an oracle it is started `fake_child -u MODE`; as a runner, without
 * arguments, the mode is the module's path in the load request. It answers
 * as the protocol says, except where the mode says otherwise. Started as
 * compute-sanitizer would be, it writes a log and then is the runner.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char description[] =
    "{\"ok\":true,\"task\":{\"name\":\"fake\",\"class\":\"pointwise\",\"evidence\":\"one "
    "operator\","
    "\"inputs\":[{\"name\":\"x\",\"role\":\"input\",\"dtype\":\"f32\",\"shape\":[1048576,100],"
    "\"strides\":[100,1]}],\"outputs\":[{\"name\":\"y\",\"role\":\"output\",\"dtype\":\"f32\","
    "\"shape\":[1048576,100],\"strides\":[100,1]}],\"bytes_min\":838860800,\"flops_min\":104857600,"
    "\"scaled\":{\"N\":[4096,256]}}}";

static void say(const char *line)
{
    puts(line);
    fflush(stdout);
}

static void misbehave(const char *mode, const char *when, const char *word)
{
    char wanted[128];

    snprintf(wanted, sizeof wanted, "%s at %s", word, when);
    if (strcmp(mode, wanted) != 0)
        return;
    if (strcmp(word, "hang") == 0)
        for (;;)
            pause();
    if (strcmp(word, "crash") == 0) {
        fputs("fake: about to die\n", stderr);
        raise(SIGKILL);
    }
    if (strcmp(word, "garbage") == 0)
        say("Segmentation fault (core dumped)");
    if (strcmp(word, "array") == 0)
        say("[1, 2, 3]");
    if (strcmp(word, "refuse") == 0)
        say("{\"ok\":false,\"kind\":\"machine\",\"text\":\"no GPU\",\"hint\":\"buy one\"}");
    if (strcmp(word, "huge") == 0) {
        char block[65536];

        memset(block, 'x', sizeof block);
        for (int i = 0; i < 3200; i++)
            if (fwrite(block, 1, sizeof block, stdout) != sizeof block)
                exit(1);
        say("");
    }
}

static void faults(const char *mode, const char *when)
{
    static const char *const words[] = {"hang", "crash", "garbage", "array", "refuse", "huge"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        misbehave(mode, when, words[i]);
}

/* ---- oracle ------------------------------------------------------------- */

static int compares;

static void compare(const char *mode)
{
    bool doubled = strcmp(mode, "doubled") == 0;
    int wrong = doubled ? 128 : 0, nan = 0, unwritten = 0, guards = 0;
    const char *modified = "", *imprecise = "false";

    compares++;
    if (strcmp(mode, "wrong") == 0 || strcmp(mode, "wrong and nan") == 0)
        wrong = 128;
    if (strcmp(mode, "wrong in draw 3") == 0 && compares == 3)
        wrong = 128;
    if (strcmp(mode, "nan") == 0 || strcmp(mode, "wrong and nan") == 0)
        nan = 7;
    if (strcmp(mode, "unwritten") == 0)
        unwritten = 32;
    if (strcmp(mode, "guard") == 0)
        guards = 12;
    if (strcmp(mode, "modified") == 0)
        modified = "\"in0\"";
    if (strcmp(mode, "imprecise") == 0)
        imprecise = "true";
    printf("{\"ok\":true,\"outputs\":[{\"name\":\"y\",\"elements\":1024,\"wrong\":%d,\"nan\":%d,"
           "\"inf\":0,\"unwritten\":%d,\"max_abs\":%s,\"max_rel\":1e-6,\"rms_rel\":1e-7,"
           "\"reference_max_abs\":3e-7,\"reference_max_rel\":2e-7,\"reference_rms_rel\":4e-8,"
           "\"tolerance\":{\"rtol\":1e-5,\"atol\":1e-6,\"rms_factor\":8},\"imprecise\":%s,"
           "\"worst\":[{\"index\":[3,17],\"expected\":0.5,\"got\":\"nan\"}],"
           "\"pattern\":\"rows 64..127 of every 128\",\"relation\":\"%s\"}],\"way\":\"in 4 parts "
           "of 9 rows\","
           "\"inputs_modified\":[%s],",
           wrong, nan, unwritten, wrong ? "0.25" : "1e-7", imprecise, doubled ? "factor" : "",
           modified);
    printf("\"guards_hit\":[");
    if (guards)
        printf("{\"buffer\":\"out0\",\"side\":\"after\",\"bytes\":%d}", guards);
    printf("]");
    if (strcmp(mode, "of another version") != 0)
        printf(",\"canary\":{\"name\":\"a planted error\",\"elements\":64,\"wrong\":%d,"
               "\"nan\":0,\"inf\":0,\"unwritten\":0,\"imprecise\":false}",
               strcmp(mode, "blind") != 0);
    say("}");
}

/* Eager's true time is 1000 us. Disturbed: most of what was timed at first, or now and then for
 * ever. */
static void baseline(const char *mode)
{
    static int timed;
    bool slow = false;

    timed++;
    if (strcmp(mode, "baseline disturbed") == 0)
        slow = timed <= 2;
    if (strcmp(mode, "baseline always disturbed") == 0)
        slow = timed != 5;
    if (strcmp(mode, "baseline a little slow") == 0 && timed < 3)
        say("{\"ok\":true,\"cold_us\":[930,1030,1130],\"warm_us\":[910]}");
    else if (slow)
        printf("{\"ok\":true,\"cold_us\":[%d,%d],\"warm_us\":[7000]}\n", 8000 * timed,
               8100 * timed);
    else
        say("{\"ok\":true,\"cold_us\":[900,1000,1100],\"warm_us\":[900]}");
    fflush(stdout);
}

static int oracle(const char *mode)
{
    static char line[1 << 16];

    if (strcmp(mode, "no torch") == 0) {
        fputs("Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n",
              stderr);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        if (strstr(line, "\"load\"")) {
            faults(mode, "load");
            say(description);
        } else if (strstr(line, "\"draw\"")) {
            faults(mode, "draw");
            say("{\"ok\":true,\"buffers\":{\"in0\":{\"path\":\"/x\",\"offset\":0,\"bytes\":4}}}");
        } else if (strstr(line, "\"compare\"")) {
            faults(mode, "compare");
            if (strcmp(mode, "full device") == 0)
                say("{\"ok\":false,\"kind\":\"busy\",\"text\":\"1.0 of 80.0 GB are free\"}");
            else
                compare(mode);
        } else if (strstr(line, "\"baseline\"")) {
            if (strstr(line, "\"graph\""))
                say("{\"ok\":false,\"kind\":\"use\",\"text\":\"cannot be "
                    "captured\",\"hint\":\"\"}");
            else
                baseline(mode);
        } else if (strstr(line, "\"trivial\"")) {
            say("{\"ok\":true,\"passes\":[\"zeros\",\"mean\"]}");
        } else {
            return 0;
        }
    }
    return 0;
}

/* ---- runner ------------------------------------------------------------- */

static const char race[] =
    "{\"ok\":true,\"outcome\":\"ok\",\"findings\":["
    "{\"kind\":\"shared-memory race\",\"kernel\":\"k<1>\",\"file\":\"/w/candidate.cu\",\"line\":3,"
    "\"block\":[0,0,0],\"thread\":[33,0,0],\"other\":{\"line\":2,\"thread\":[2,0,0]},"
    "\"text\":\"read of 4 bytes at shared+128\"},"
    "{\"kind\":\"shared-memory race\",\"kernel\":\"k<1>\",\"file\":\"/w/candidate.cu\",\"line\":3,"
    "\"block\":[1,0,0],\"thread\":[34,0,0],\"other\":{\"line\":2,\"thread\":[2,0,0]},"
    "\"text\":\"read of 4 bytes at shared+132\"}],\"hash\":\"1\"}";

static const char fence[] =
    "{\"ok\":true,\"outcome\":\"ok\",\"findings\":[{\"kind\":\"missing tcgen05 fence\",\"kernel\":"
    "\"k<1>\",\"file\":\"candidate.cu\",\"line\":2,\"text\":\"no tcgen05.fence\"}],\"hash\":\"1\"}";

static const char bounds[] =
    "{\"ok\":true,\"outcome\":\"ok\",\"findings\":[{\"kind\":\"out-of-bounds write\",\"kernel\":"
    "\"k<1>\",\"file\":\"candidate.cu\",\"line\":2,\"block\":[0,0,0],\"thread\":[1,0,0],\"text\":"
    "\"4 bytes past out0\"}],\"hash\":\"1\"}";

static void run(const char *mode)
{
    static int runs;

    runs++;
    faults(mode, "run");
    if (strcmp(mode, "race") == 0)
        say(race);
    else if (strcmp(mode, "fence") == 0)
        say(fence);
    else if (strcmp(mode, "bounds") == 0)
        say(bounds);
    else if (strcmp(mode, "gpu fault") == 0)
        say("{\"ok\":true,\"outcome\":\"crash\",\"op\":0,\"text\":\"k<1>: "
            "CUDA_ERROR_ILLEGAL_ADDRESS\"}");
    else if (strcmp(mode, "greedy") == 0)
        say("{\"ok\":true,\"outcome\":\"out of memory\",\"text\":\"workspace ws0 of 512 bytes\"}");
    else if (strcmp(mode, "odd outcome") == 0)
        say("{\"ok\":true,\"outcome\":\"splendid\"}");
    else if (strcmp(mode, "restless") == 0 && runs == 2)
        say("{\"ok\":true,\"outcome\":\"ok\",\"hash\":\"2\"}");
    else
        say("{\"ok\":true,\"outcome\":\"ok\",\"hash\":\"1\",\"counters\":[{\"kernel\":\"k<1>\","
            "\"blocks\":64,\"threads_block\":256,\"global_load_sectors\":4096,"
            "\"global_load_requests\":1024,\"warp_instructions\":9000}]}");
}

static void timing(const char *mode)
{
    static int asked;

    asked++;
    if (strcmp(mode, "too fast") == 0)
        say("{\"ok\":true,\"outcome\":\"ok\",\"cold_us\":[1,1.5,1.25],\"warm_us\":[1]}");
    else if (strcmp(mode, "slow clock") == 0)
        say("{\"ok\":true,\"outcome\":\"ok\",\"cold_us\":[300,310],\"warm_us\":[250],\"wall_us\":"
            "2500}");
    else if (strcmp(mode, "very short") == 0) /* 8.5 us, 9 us, ... in each process */
        printf("{\"ok\":true,\"outcome\":\"ok\",\"cold_us\":[%g],\"warm_us\":[8]}\n",
               8 + 0.5 * asked);
    else if (strcmp(mode, "short") == 0) /* 31 us, 32 us, ..., but for the fifth */
        printf("{\"ok\":true,\"outcome\":\"ok\",\"cold_us\":[%d],\"warm_us\":[30]}\n",
               asked == 5 ? 45 : 30 + asked);
    else if (strcmp(mode, "now and then") == 0)
        say("{\"ok\":true,\"outcome\":\"ok\",\"cold_us\":[300],\"warm_us\":[250],"
            "\"other_outputs\":40}");
    else if (strcmp(mode, "drifting") == 0)
        printf("{\"ok\":true,\"outcome\":\"ok\",\"cold_us\":[%d,%d],\"warm_us\":[1]}\n",
               300 << asked, 300 << asked);
    else
        say("{\"ok\":true,\"outcome\":\"ok\",\"cold_us\":[300,310,290,\"nan\",-1],"
            "\"warm_us\":[250]}");
    fflush(stdout);
}

static int runner(void)
{
    static char line[1 << 16];
    char mode[128] = "";

    while (fgets(line, sizeof line, stdin)) {
        char *module = strstr(line, "\"module\": \"");

        module = module ? module : strstr(line, "\"module\":\"");
        if (module) {
            module = strchr(module + 9, '"') + 1;
            snprintf(mode, sizeof mode, "%.*s", (int)strcspn(module, "\""), module);
            faults(mode, "load");
            if (strcmp(mode, "bad launch") == 0)
                say("{\"ok\":true,\"outcome\":\"bad launch\",\"op\":0,\"text\":\"argument 4 of "
                    "k<1> "
                    "is 4 bytes, the kernel takes 8\"}");
            else
                say("{\"ok\":true,\"outcome\":\"ok\"}");
        } else if (strstr(line, "\"bind\"")) {
            say("{\"ok\":true}");
        } else if (strstr(line, "\"run\"")) {
            run(mode);
        } else if (strstr(line, "\"time\"")) {
            timing(mode);
        } else {
            return 0;
        }
    }
    return 0;
}

/* --tool TOOL --log-file PATH ... RUNNER */
static int sanitizer(char **argv)
{
    FILE *log = fopen(argv[4], "w");

    if (!log)
        return 1;
    if (strcmp(argv[2], "memcheck") == 0)
        fputs("========= COMPUTE-SANITIZER\n"
              "========= Invalid __global__ write of size 4 bytes\n"
              "=========     at k(float *)+0x70 in /w/candidate.cu:3\n"
              "=========     by thread (1,0,0) in block (2,0,0)\n"
              "=========     Access to 0x7f01 is out of bounds\n",
              log);
    fclose(log);
    return runner();
}

int main(int argc, char **argv)
{
    if (argc > 5 && strcmp(argv[1], "--tool") == 0)
        return sanitizer(argv);
    /* python -I -B -u SCRIPT --memory N: the script's name says what to do */
    return argc > 4 ? oracle(argv[4]) : runner();
}
