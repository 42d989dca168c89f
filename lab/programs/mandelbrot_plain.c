/* Escape times as the definition has them, one point after the other: what a C
 * programmer would write first. Prints as mandelbrot.c does.
 *
 * usage: mandelbrot_plain SIDE UNITS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 256 };

static uint64_t escape_time(double x, double y)
{
    double re = 0, im = 0;
    for (uint64_t count = 0; count < STEPS; count++) {
        double square = re * re - im * im + x;
        im = (re + re) * im + y;
        re = square;
        if (re * re + im * im > 4)
            return count;
    }
    return STEPS;
}

int main(int count, char **argument)
{
    if (count != 3)
        return 2;
    size_t side = strtoull(argument[1], 0, 10), units = strtoull(argument[2], 0, 10);
    uint64_t inside = 0, digest = 0;
    double step = 2.5 / side;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (size_t unit = 0; unit < units; unit++)
        for (size_t row = 0; row < side; row++) {
            double y = (2.0 * row + 1.0 - side) * (2.5 / 2 / side);
            for (size_t column = 0; column < side; column++) {
                uint64_t steps = escape_time(-2.0 + (column + 0.5) * step, y);
                inside += steps == STEPS;
                digest += steps * (2 * column + 1);
            }
        }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.9f %llu %016llx\n", (end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec),
           (unsigned long long)(inside / units), (unsigned long long)digest);
    return 0;
}
