/* What loading the topology takes, ROUNDS times: the best and the median, us. */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
int main(void) {
    static double times[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        hwloc_topology_t t;
        if (hwloc_topology_init(&t) || hwloc_topology_load(t)) return 1;
        clock_gettime(CLOCK_MONOTONIC, &b);
        hwloc_topology_destroy(t);
        times[i] = (b.tv_sec - a.tv_sec) * 1e6 + (b.tv_nsec - a.tv_nsec) / 1e3;
    }
    qsort(times, ROUNDS, sizeof *times, by_size);
    printf("%f %f\n", times[0], times[ROUNDS / 2]);
}
