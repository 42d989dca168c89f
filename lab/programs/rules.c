/* What the benchmark of rules starts: many processes a second, or one that
 * waits until it is placed. */
#define _GNU_SOURCE
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Microseconds from the first instruction of main until the mask is one CPU. */
static int wait_for_place(void) {
    long long begin = now();
    cpu_set_t mask;
    do {
        if (now() - begin > 2000000000LL) {
            puts("never");
            return 1;
        }
        struct timespec nap = {0, 50000};
        nanosleep(&nap, NULL);
        sched_getaffinity(0, sizeof mask, &mask);
    } while (CPU_COUNT(&mask) != 1);
    printf("%lld\n", (now() - begin) / 1000);
    return 0;
}

/* Starts a program so many times a second, for so many seconds. */
static int start(long rate, long seconds, char *program) {
    char *arguments[] = {program, NULL};
    long long begin = now();
    long count = rate * seconds;
    for (long i = 0; i < count; i++) {
        long long due = begin + i * 1000000000LL / rate;
        struct timespec until = {due / 1000000000LL, due % 1000000000LL};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        pid_t child;
        if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0)
            return 1;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
    while (waitpid(-1, NULL, 0) > 0)
        ;
    printf("%.1f\n", count / ((now() - begin) / 1e9));
    return 0;
}

int main(int count, char **words) {
    if (count == 5 && strcmp(words[1], "start") == 0)
        return start(atol(words[2]), atol(words[3]), words[4]);
    return wait_for_place();
}
