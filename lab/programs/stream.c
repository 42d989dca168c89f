/* The four STREAM loops (McCalpin 1995: copy and triad; fill and sum added for
 * stores and loads alone), written anew for comparison with pinwise's probes:
 * OpenMP, arrays touched first by the thread that uses them, bytes counted as
 * STREAM counts them, GB/s of 1e9 bytes.
 *
 * usage: stream BYTES PASSES (of each array in all; passes of each loop)
 * prints: NAME BEST MEDIAN, one line per loop */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int by_size(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static void tell(const char *name, double bytes, double *seconds, int passes) {
  /* As in STREAM, the first pass does not count. */
  qsort(seconds + 1, passes - 1, sizeof *seconds, by_size);
  double best = seconds[1], median = seconds[1 + (passes - 1) / 2];
  printf("%s %.4f %.4f\n", name, bytes / best / 1e9, bytes / median / 1e9);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  long n = atol(arguments[1]) / 8;
  int passes = atoi(arguments[2]);
  double *a = aligned_alloc(4096, n * 8), *b = aligned_alloc(4096, n * 8),
         *c = aligned_alloc(4096, n * 8), *seconds = malloc(passes * sizeof *seconds);
  if (!a || !b || !c || !seconds || passes < 2) return 1;
  double scalar = 3.0, sum = 0.0;
#pragma omp parallel for
  for (long i = 0; i < n; i++) a[i] = 1.0, b[i] = 2.0, c[i] = 0.5;

  for (int pass = 0; pass < passes; pass++) {
    seconds[pass] = omp_get_wtime();
#pragma omp parallel for simd reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += b[i];
    seconds[pass] = omp_get_wtime() - seconds[pass];
  }
  tell("read", 8.0 * n, seconds, passes);

  for (int pass = 0; pass < passes; pass++) {
    seconds[pass] = omp_get_wtime();
#pragma omp parallel for
    for (long i = 0; i < n; i++) a[i] = scalar;
    seconds[pass] = omp_get_wtime() - seconds[pass];
  }
  tell("write", 8.0 * n, seconds, passes);

  for (int pass = 0; pass < passes; pass++) {
    seconds[pass] = omp_get_wtime();
#pragma omp parallel for
    for (long i = 0; i < n; i++) a[i] = b[i];
    seconds[pass] = omp_get_wtime() - seconds[pass];
  }
  tell("copy", 16.0 * n, seconds, passes);

  for (int pass = 0; pass < passes; pass++) {
    seconds[pass] = omp_get_wtime();
#pragma omp parallel for
    for (long i = 0; i < n; i++) a[i] = b[i] + scalar * c[i];
    seconds[pass] = omp_get_wtime() - seconds[pass];
  }
  tell("triad", 24.0 * n, seconds, passes);
  fprintf(stderr, "%g %g\n", sum, a[n / 2]);
  return 0;
}
