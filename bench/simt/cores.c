/*
 * cores.c - what a second CPU of this machine adds: the bound of what simt's second thread can.
 *
 *     gcc -O2 -march=native -pthread -o cores bench/simt/cores.c -lm
 *     ./cores                every pair of the first 16 CPUs (arithmetic), then the best, the worst
 *                            and the neighbours under each loop, and what /sys says of them
 *     ./cores A B            that pair alone
 *     ./cores --pick         "A B RATIO": the pair that adds most
 *
 * Two CPUs of a guest may be the two threads of one core of the host. A loop that waits for its
 * own results (chain) does not notice; one that fills the vector units (fma), the integer ports
 * (alu) or the caches (cache, copy) does. Each CPU does the same work as alone, at the same time;
 * the ratio is work per second of both over that of the faster one alone. Threads are started and
 * pinned before the clock is, and meet by spinning; "start" is what they would have to wait.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CPUS = 16, TURNS = 5, CACHE_BYTES = 512 << 10, COPY_BYTES = 48 << 20 };

typedef float vec __attribute__((vector_size(64)));

static _Atomic int arrived;
static char *memory[2];
static volatile double sink;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void chain(int who)
{
    float x = (float)who;
    for (int i = 0; i < 400000; i++)
        x = sqrtf(x + 3.0f);
    sink = x;
}

static void fma_loop(int who)
{
    vec s[12], a = (vec){0} + 1e-9f * (float)(who + 1), b = (vec){0} + 0.999f;
    for (int k = 0; k < 12; k++)
        s[k] = a + (float)k;
    for (int i = 0; i < 1000000; i++)
#pragma GCC unroll 12
        for (int k = 0; k < 12; k++)
            s[k] = s[k] * b + a;
    for (int k = 1; k < 12; k++)
        s[0] += s[k];
    sink = s[0][3];
}

static void alu(int who)
{
    unsigned long s[6] = {1, 2, 3, 4, 5, (unsigned long)who};
    for (int i = 0; i < 2500000; i++)
#pragma GCC unroll 6
        for (int k = 0; k < 6; k++) {
            s[k] = (s[k] ^ 0x55) + (unsigned long)i;
            __asm__ volatile("" : "+r"(s[k]));
        }
    sink = (double)(s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4] ^ s[5]);
}

static void cache(int who)
{
    const vec *p = (const vec *)(const void *)memory[who];
    vec s[4] = {{0}};
    for (int turn = 0; turn < 60; turn++)
        for (int i = 0; i < CACHE_BYTES / 64; i += 4)
            for (int k = 0; k < 4; k++)
                s[k] += p[i + k];
    sink = (s[0] + s[1] + s[2] + s[3])[1];
}

static void copy(int who)
{
    memcpy(memory[who], memory[who] + COPY_BYTES, COPY_BYTES);
}

static const struct {
    const char *name;
    void (*run)(int who);
} loops[] = {{"chain", chain}, {"fma", fma_loop}, {"alu", alu}, {"cache", cache}, {"copy", copy}};
enum { FMA = 1, LOOPS = sizeof loops / sizeof *loops };

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("sched_setaffinity");
}

struct side {
    int who, cpu, loop, turns, partners;
    double least; /* seconds from the common start to one's own end */
};

static void *side_run(void *arg)
{
    struct side *s = arg;
    pin(s->cpu);
    s->least = 1e9;
    for (int turn = 1; turn <= s->turns; turn++) {
        atomic_fetch_add(&arrived, 1);
        while (atomic_load(&arrived) < turn * s->partners)
            ;
        double start = seconds();
        loops[s->loop].run(s->who);
        double t = seconds() - start;
        s->least = t < s->least ? t : s->least;
    }
    return NULL;
}

/* Seconds of the loop on a, and with b >= 0 those of the slower of both at once. */
static double timed(int loop, int a, int b, int turns)
{
    struct side s[2] = {{0, a, loop, turns, b < 0 ? 1 : 2, 0}, {1, b, loop, turns, 2, 0}};
    pthread_t id[2];
    atomic_store(&arrived, 0);
    for (int i = 0; i < (b < 0 ? 1 : 2); i++)
        if (pthread_create(&id[i], NULL, side_run, &s[i]) != 0)
            exit(1);
    for (int i = 0; i < (b < 0 ? 1 : 2); i++)
        pthread_join(id[i], NULL);
    return b >= 0 && s[1].least > s[0].least ? s[1].least : s[0].least;
}

static double gain(int loop, int a, int b)
{
    double one = timed(loop, a, -1, TURNS), other = timed(loop, b, -1, TURNS);
    return 2 * (one < other ? one : other) / timed(loop, a, b, TURNS);
}

static void *started(void *arg)
{
    *(double *)arg = seconds();
    return NULL;
}

/* How long until a thread made on one CPU runs on the other, which sleeps. */
static double start_us(int a, int b)
{
    double all = 0, ran = 0;
    pthread_attr_t attr;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(b, &set);
    pin(a);
    pthread_attr_init(&attr);
    pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    for (int i = 0; i < 20; i++) {
        pthread_t id;
        usleep(2000);
        double t = seconds();
        if (pthread_create(&id, &attr, started, &ran) != 0)
            return 0;
        pthread_join(id, NULL);
        all += ran - t;
    }
    pthread_attr_destroy(&attr);
    return all / 20 * 1e6;
}

static void print_file(const char *what, const char *format, int cpu)
{
    char path[128], line[128] = "?\n";
    snprintf(path, sizeof path, format, cpu);
    FILE *f = fopen(path, "r");
    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        fclose(f);
    line[strcspn(line, "\n")] = 0;
    printf(" %s %s", what, line);
}

static void topology(int cpu)
{
    printf("cpu %d:", cpu);
    print_file("core", "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
    print_file("siblings", "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    print_file("L2 of", "/sys/devices/system/cpu/cpu%d/cache/index2/shared_cpu_list", cpu);
    print_file("L3 of", "/sys/devices/system/cpu/cpu%d/cache/index3/shared_cpu_list", cpu);
    putchar('\n');
}

static void pair(int a, int b)
{
    printf("%2d,%-2d", a, b);
    for (int l = 0; l < LOOPS; l++)
        printf("  %s %.2f", loops[l].name, gain(l, a, b));
    printf("  start %.0f us\n", start_us(a, b));
    fflush(stdout);
}

/* Ratios of all pairs under arithmetic; the least and the largest. */
static void matrix(int n, int loud, int least[2], int most[2], double *best)
{
    double alone[CPUS], low = 9;
    *best = 0;
    for (int a = 0; a < n; a++)
        alone[a] = timed(FMA, a, -1, 3);
    for (int a = 0; a < n && loud; a++)
        printf("%s%.2f%s", a ? " " : "fma alone, ms: ", alone[a] * 1e3, a + 1 < n ? "" : "\n");
    for (int a = 0; a < n; a++) {
        for (int b = a + 1; b < n; b++) {
            double fast = alone[a] < alone[b] ? alone[a] : alone[b];
            double r = 2 * fast / timed(FMA, a, b, 3);
            if (loud)
                printf("%s%.2f", b == a + 1 ? "" : " ", r);
            if (r < low) {
                low = r;
                least[0] = a, least[1] = b;
            }
            if (r > *best) {
                *best = r;
                most[0] = a, most[1] = b;
            }
        }
        if (loud)
            putchar('\n');
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int n = (int)sysconf(_SC_NPROCESSORS_ONLN), least[2] = {0, 1}, most[2] = {0, 1};
    double best;
    n = n < CPUS ? n : CPUS;
    for (int i = 0; i < 2; i++) {
        memory[i] = aligned_alloc(4096, 2 * COPY_BYTES);
        if (!memory[i])
            return 1;
        memset(memory[i], 0, 2 * COPY_BYTES);
    }
    if (argc == 3) {
        pair(atoi(argv[1]), atoi(argv[2]));
        return 0;
    }
    if (n < 2)
        return 1;
    matrix(n, argc < 2, least, most, &best);
    if (argc == 2) {
        printf("%d %d %.2f\n", most[0], most[1], best);
        return 0;
    }
    for (int i = 0; i < n; i++)
        topology(i);
    pair(most[0], most[1]);
    pair(least[0], least[1]);
    for (int b = 1; b < n; b *= 2)
        pair(0, b);
    return 0;
}
