/*
 * cores.c - what a second core gives to a plain loop over memory on this machine: the bound of
 * what simt's second thread can give a kernel bound by memory.
 *
 *     gcc -O3 -march=native -pthread -o cores bench/simt/cores.c && ./cores
 *
 * Seconds on the wall, the best of seven, of copying 64 MiB and of 16 M square roots there and
 * back from registers; by one thread and by two.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FLOATS = 16 << 20, TURNS = 7 };

static float *from, *to;
static int threads, computes;

static void *part(void *arg)
{
    size_t n = FLOATS / (size_t)threads, first = n * (size_t)(long)arg;
    if (!computes) {
        memcpy(to + first, from + first, n * sizeof *to);
        return NULL;
    }
    float sum[16] = {0};
    for (int turn = 0; turn < 4; turn++)
        for (size_t i = 0; i < n / 16; i++)
            for (int k = 0; k < 16; k++)
                sum[k] = sqrtf(sum[k] + (float)k);
    for (int k = 0; k < 16; k++)
        to[first] += sum[k];
    return NULL;
}

static double best(void)
{
    double least = 1e9;
    for (int turn = 0; turn < TURNS; turn++) {
        struct timespec a, b;
        pthread_t id[8];
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (long i = 1; i < threads; i++)
            pthread_create(&id[i], NULL, part, (void *)i);
        part((void *)0L);
        for (int i = 1; i < threads; i++)
            pthread_join(id[i], NULL);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double s = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        least = s < least ? s : least;
    }
    return least;
}

int main(void)
{
    from = aligned_alloc(4096, FLOATS * sizeof *from);
    to = aligned_alloc(4096, FLOATS * sizeof *to);
    if (!from || !to)
        return 1;
    memset(from, 0, FLOATS * sizeof *from);
    memset(to, 0, FLOATS * sizeof *to);
    for (computes = 0; computes < 2; computes++) {
        double t[2];
        for (threads = 1; threads <= 2; threads++)
            t[threads - 1] = best();
        printf("%-8s one thread %.4f s, two %.4f s: %.2f times\n", computes ? "compute" : "copy",
               t[0], t[1], t[0] / t[1]);
    }
    return 0;
}
