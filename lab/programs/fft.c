/* The work of `pinwise bench kernel fft` in C: units of sequences that are
 * correlated with themselves. Stockham's transform of radix 4 with tables, real
 * and imaginary parts in arrays of their own, so that a compiler can vectorise
 * it. Prints the seconds and the same checksum. Lengths are powers of two.
 *
 * usage: fft POINTS ROUNDS UNITS
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static size_t points;
static double *table; /* for each stage: w, w^2, w^3 of each p, re and im */

static void *room(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory)
        exit(1);
    return memory;
}

static void plan(void)
{
    double *at = table = room(points * 3 * sizeof(double));
    for (size_t n = points; n >= 4; n /= 4)
        for (size_t p = 0; p < n / 4; p++)
            for (int power = 1; power <= 3; power++) {
                double angle = -2 * M_PI * (double)(p * power) / (double)n;
                *at++ = cos(angle);
                *at++ = sin(angle);
            }
}

static void stage(size_t n, size_t s, const double *restrict xr, const double *restrict xi,
                  double *restrict yr, double *restrict yi, const double *restrict w)
{
    size_t quarter = n / 4, gap = s * quarter;
    for (size_t p = 0; p < quarter; p++, w += 6) {
        double r1 = w[0], i1 = w[1], r2 = w[2], i2 = w[3], r3 = w[4], i3 = w[5];
        const double *ar = xr + s * p, *ai = xi + s * p;
        double *br = yr + 4 * s * p, *bi = yi + 4 * s * p;
        for (size_t q = 0; q < s; q++) {
            double sr = ar[q] + ar[q + 2 * gap], si = ai[q] + ai[q + 2 * gap];
            double dr = ar[q] - ar[q + 2 * gap], di = ai[q] - ai[q + 2 * gap];
            double tr = ar[q + gap] + ar[q + 3 * gap], ti = ai[q + gap] + ai[q + 3 * gap];
            double er = ar[q + gap] - ar[q + 3 * gap], ei = ai[q + gap] - ai[q + 3 * gap];
            double ur = dr + ei, ui = di - er, vr = dr - ei, vi = di + er;
            br[q] = sr + tr;
            bi[q] = si + ti;
            br[q + s] = r1 * ur - i1 * ui;
            bi[q + s] = r1 * ui + i1 * ur;
            br[q + 2 * s] = r2 * (sr - tr) - i2 * (si - ti);
            bi[q + 2 * s] = r2 * (si - ti) + i2 * (sr - tr);
            br[q + 3 * s] = r3 * vr - i3 * vi;
            bi[q + 3 * s] = r3 * vi + i3 * vr;
        }
    }
}

/* Transforms in place, with a second pair of arrays; back, where real and
 * imaginary parts are given the other way round. */
static void transform(double **xr, double **xi, double **yr, double **yi)
{
    const double *w = table;
    size_t n = points, s = 1;
    double *keep;
    for (; n >= 4; n /= 4, s *= 4) {
        stage(n, s, *xr, *xi, *yr, *yi, w);
        w += n / 4 * 6;
        keep = *xr, *xr = *yr, *yr = keep;
        keep = *xi, *xi = *yi, *yi = keep;
    }
    if (n == 2) {
        double *r = *xr, *i = *xi;
        for (size_t q = 0; q < s; q++) {
            double ar = r[q], ai = i[q], br = r[q + s], bi = i[q + s];
            r[q] = ar + br, i[q] = ai + bi;
            r[q + s] = ar - br, i[q + s] = ai - bi;
        }
    }
}

static uint64_t mixed(uint64_t unit, uint64_t digest)
{
    uint64_t hash = digest ^ unit * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t folded(uint64_t digest, uint64_t value)
{
    uint64_t hash = (digest ^ value) * 0x100000001b3u;
    return hash << 29 | hash >> 35;
}

static signed char (*given)[2];

static int is_direct_sum(size_t lag, double re, double im)
{
    int64_t sr = 0, si = 0;
    for (size_t k = 0, later = lag; k < points; k++, later++) {
        later -= later >= points ? points : 0;
        sr += given[later][0] * given[k][0] + given[later][1] * given[k][1];
        si += given[later][1] * given[k][0] - given[later][0] * given[k][1];
    }
    return fabs(re / points - sr) < 0.25 && fabs(im / points - si) < 0.25;
}

int main(int count, char **argument)
{
    if (count != 4)
        return 2;
    points = strtoull(argument[1], 0, 10);
    uint64_t rounds = strtoull(argument[2], 0, 10), units = strtoull(argument[3], 0, 10);
    plan();
    given = room(points * 2);
    double *re = room(points * 8), *im = room(points * 8);
    double *re2 = room(points * 8), *im2 = room(points * 8);
    for (size_t k = 0; k < points; k++)
        re[k] = im[k] = re2[k] = im2[k] = 1, given[k][0] = 1;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t sum = 0;
    for (uint64_t unit = 0; unit < units; unit++) {
        uint64_t state = mixed(unit, 0x70696e77697365u), digest = 0;
        for (uint64_t round = 0; round < rounds; round++) {
            for (size_t k = 0; k < points; k += 8) {
                uint64_t bits = next(&state);
                for (size_t j = k; j < k + 8; j++, bits >>= 8) {
                    given[j][0] = (bits & 15) - 8, given[j][1] = (bits >> 4 & 15) - 8;
                    re[j] = given[j][0], im[j] = given[j][1];
                }
            }
            transform(&re, &im, &re2, &im2);
            for (size_t k = 0; k < points; k++)
                re[k] = re[k] * re[k] + im[k] * im[k], im[k] = 0;
            transform(&im, &re, &im2, &re2);
            uint64_t part = 0;
            double scale = 1.0 / points, worst = 0;
            for (size_t k = 0; k < points; k++) {
                double a = re[k] * scale, b = im[k] * scale;
                double c = nearbyint(a), d = nearbyint(b);
                worst = fmax(worst, fmax(fabs(a - c), fabs(b - d)));
                uint64_t low = (uint64_t)(int64_t)c, high = (uint64_t)(int64_t)d;
                part += (low ^ (high << 32 | high >> 32)) * (2 * k + 1);
            }
            size_t lag = next(&state) % points;
            if (!(worst <= 0.25) || !is_direct_sum(0, re[0], im[0]) ||
                !is_direct_sum(lag, re[lag], im[lag])) {
                fprintf(stderr, "wrong result\n");
                return 1;
            }
            digest = folded(digest, part);
        }
        sum += mixed(unit, digest);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.9f %016llx\n", (end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec),
           (unsigned long long)sum);
    return 0;
}
