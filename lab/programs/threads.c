/* Creates and joins threads, and prints microseconds per thread: one after another,
   placed by itself on CPUs 0 and 1 in turn, or all at-once. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_barrier_t barrier;

static void *alone(void *unused) { return unused; }

static void *together(void *unused) {
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(int argc, char **argv) {
    long many = atol(argv[1]);
    int at_once = argc > 2 && strcmp(argv[2], "at-once") == 0;
    int placed = argc > 2 && strcmp(argv[2], "placed") == 0;
    struct timespec from, to;
    pthread_t *threads = calloc(many, sizeof *threads);
    pthread_barrier_init(&barrier, NULL, many + 1);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < many; i++) {
        cpu_set_t cpus;
        pthread_attr_t attributes;
        CPU_ZERO(&cpus);
        CPU_SET(i % 2, &cpus);
        pthread_attr_init(&attributes);
        if (placed)
            pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
        if (pthread_create(&threads[i], &attributes, at_once ? together : alone, NULL) != 0)
            return 1;
        if (!at_once)
            pthread_join(threads[i], NULL);
    }
    if (at_once)
        pthread_barrier_wait(&barrier);
    for (long i = 0; at_once && i < many; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = 1e9 * (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec);
    printf("%.3f\n", ns / 1e3 / many);
    return 0;
}
