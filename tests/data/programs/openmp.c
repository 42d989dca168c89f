/* An OpenMP program of which one of two threads has all the work: the other
 * waits at the end of each region. Usage: openmp SECONDS */
#include <omp.h>
#include <stdlib.h>

int main(int count, char **arguments) {
  double end = omp_get_wtime() + (count > 1 ? atof(arguments[1]) : 1);
  while (omp_get_wtime() < end) {
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
      volatile double x = 1;
      for (int i = 0; i < 500000; i++) x = x * 1.0000001;
    }
  }
}
