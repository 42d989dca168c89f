// Threads that only compute; without any, main does. Usage: threads COUNT [TURNS]
#include <pthread.h>
#include <stdlib.h>
static long turns = 2000000;
static void *work(void *n) { volatile long x = 0; for (long i = 0; i < turns; i++) x += i; return n; }
int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  pthread_t all[2000];
  pthread_attr_t small;
  if (argc > 2) turns = atol(argv[2]);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  if (n == 0) work(0);
  for (int i = 0; i < n; i++) pthread_create(&all[i], &small, work, 0);
  for (int i = 0; i < n; i++) pthread_join(all[i], 0);
}
