/* The work of `pinwise bench kernel mandelbrot` in C, by the same method: chunks of
 * points in arrays, blocks of steps without looking, blocks in which a point
 * leaves made again. Prints the seconds, how many points are inside, and the
 * points of a picture. The compiler may fuse multiplications and additions, so
 * that counts at the very edge may differ.
 *
 * usage: mandelbrot SIDE UNITS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 256, BLOCK = 8 };
#ifndef LANES
#define LANES 32
#endif

static inline void advance(double *restrict re, double *restrict im, const double *restrict x,
                           double y)
{
    for (int lane = 0; lane < LANES; lane++) {
        double a = re[lane], b = im[lane];
        re[lane] = a * a - b * b + x[lane];
        im[lane] = (a + a) * b + y;
    }
}

static inline void look(const double *restrict re, const double *restrict im,
                        uint64_t *restrict marks)
{
    for (int lane = 0; lane < LANES; lane++)
        marks[lane] = re[lane] * re[lane] + im[lane] * im[lane] <= 4.0 ? ~0ull : 0;
}

static void chunk(const double *x, double y, uint64_t *counts)
{
    double re[LANES] = {0}, im[LANES] = {0}, re0[LANES], im0[LANES];
    uint64_t marks[LANES], now[LANES], any;
    memset(marks, 255, sizeof marks);
    memset(counts, 0, sizeof marks);
    for (int block = 0; block < STEPS / BLOCK; block++) {
        memcpy(re0, re, sizeof re);
        memcpy(im0, im, sizeof im);
        for (int step = 0; step < BLOCK; step++)
            advance(re, im, x, y);
        look(re, im, now);
        any = 0;
        for (int lane = 0; lane < LANES; lane++)
            any |= now[lane] ^ marks[lane];
        if (!any) {
            for (int lane = 0; lane < LANES; lane++)
                counts[lane] += marks[lane] & BLOCK;
            continue;
        }
        memcpy(re, re0, sizeof re);
        memcpy(im, im0, sizeof im);
        for (int step = 0; step < BLOCK; step++) {
            advance(re, im, x, y);
            look(re, im, now);
            for (int lane = 0; lane < LANES; lane++) {
                marks[lane] &= now[lane];
                counts[lane] += marks[lane] & 1;
            }
        }
        any = 0;
        for (int lane = 0; lane < LANES; lane++)
            any |= marks[lane];
        if (!any)
            return;
    }
}

int main(int count, char **argument)
{
    if (count != 3)
        return 2;
    size_t side = strtoull(argument[1], 0, 10), units = strtoull(argument[2], 0, 10);
    uint64_t inside = 0, digest = 0, counts[LANES];
    double x[LANES], step = 2.5 / side;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (size_t unit = 0; unit < units; unit++)
        for (size_t row = 0; row < side; row++) {
            double y = (2.0 * row + 1.0 - side) * (2.5 / 2 / side);
            for (size_t first = 0; first < side; first += LANES) {
                for (int lane = 0; lane < LANES; lane++)
                    x[lane] = -2.0 + ((double)(first + lane) + 0.5) * step;
                chunk(x, y, counts);
                for (size_t lane = 0; lane < LANES && first + lane < side; lane++) {
                    inside += counts[lane] == STEPS;
                    digest += counts[lane] * (2 * (first + lane) + 1);
                }
            }
        }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.9f %llu %016llx\n", (end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec),
           (unsigned long long)(inside / units), (unsigned long long)digest);
    return 0;
}
