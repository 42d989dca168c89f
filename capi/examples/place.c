/*
 * Threads that place themselves, in C.
 *
 *     cc place.c -lpinwise -lpthread -o place && ./place [PLACEMENT [THREADS]]
 *
 * Every thread binds itself, and reads its mask back from the kernel.
 */
#define _GNU_SOURCE
#include <pinwise.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct worker {
    pthread_t thread;
    const PinwisePlaces *places;
    size_t number;
    int ran_on;
    int mask_is_right;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    if (pinwise_bind(worker->places, worker->number) != 0) {
        fprintf(stderr, "thread %zu: %s\n", worker->number, pinwise_last_error());
        return NULL;
    }
    worker->ran_on = pinwise_current_cpu();
    cpu_set_t mask;
    CPU_ZERO(&mask);
    worker->mask_is_right = sched_getaffinity(0, sizeof mask, &mask) == 0 &&
                            CPU_COUNT(&mask) == 1 && CPU_ISSET(worker->ran_on, &mask);
    return pinwise_unbind() == 0 ? argument : NULL;
}

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, pinwise_last_error());
    return EXIT_FAILURE;
}

int main(int count, char **arguments) {
    PinwiseHost *host = pinwise_host_discover();
    if (host == NULL) {
        return fail("discover");
    }
    PinwiseWorkers workers;
    if (pinwise_host_workers(host, &workers, sizeof workers) != 0) {
        return fail("workers");
    }
    printf("%zu CPUs, %zu cores, %zu workers make sense\n", workers.cpus, workers.cores,
           workers.parallelism);

    size_t threads = count > 2 ? strtoul(arguments[2], NULL, 10) : 0;
    PinwisePlaces *places = count > 1 ? pinwise_place_as(host, arguments[1], threads)
                                      : pinwise_place(host, threads);
    pinwise_host_free(host);
    if (places == NULL) {
        return fail("place");
    }

    size_t wanted = pinwise_places_threads(places);
    struct worker *all = calloc(wanted, sizeof *all);
    if (all == NULL) {
        return EXIT_FAILURE;
    }
    int wrong = 0;
    for (size_t i = 0; i < wanted; i++) {
        all[i] = (struct worker){.places = places, .number = i, .ran_on = -1};
        if (pthread_create(&all[i].thread, NULL, work, &all[i]) != 0) {
            return EXIT_FAILURE;
        }
    }
    for (size_t i = 0; i < wanted; i++) {
        void *result = NULL;
        pthread_join(all[i].thread, &result);
        printf("thread %zu ran on CPU %d\n", i, all[i].ran_on);
        wrong |= result == NULL || !all[i].mask_is_right ||
                 all[i].ran_on != pinwise_places_cpu(places, i);
    }
    free(all);
    pinwise_places_free(places);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
