/* Two threads that share a pthread spin lock, which is taken nearly all the
 * time. Usage: spin_lock SECONDS */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static pthread_spinlock_t lock;
static double end;
static volatile long work;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *run(void *unused) {
  while (now() < end) {
    pthread_spin_lock(&lock);
    for (int i = 0; i < 100000; i++) work++;
    pthread_spin_unlock(&lock);
  }
  return unused;
}

int main(int count, char **arguments) {
  end = now() + (count > 1 ? atof(arguments[1]) : 1);
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}
