/* Two threads that compute; the second moves itself to all CPUs first. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

static void compute(void) {
    struct timespec now, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    end.tv_nsec += 50 * 1000 * 1000;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec < end.tv_sec || now.tv_nsec < end.tv_nsec);
}

static void *moves(void *unused) {
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    compute();
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, moves, NULL);
    compute();
    pthread_join(thread, NULL);
    return 0;
}
