/* Two threads and a lock whose waiters spin as the .NET Framework's did:
 * rounds of 50 PAUSEs that triple while below 20,000 times the CPUs, ten times
 * over, a look before each. The holder sleeps, so that the other thread waits
 * even where one CPU is free. Usage: netfx_lock SECONDS [CPUS, 24 if not said] */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static atomic_int taken;
static unsigned cpus = 24;
static double end;
static volatile unsigned long work;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Works, and hardly reads the clock: reading it over and over is a wait, too. */
static void busy(double seconds) {
  for (double until = now() + seconds; now() < until;)
    for (int i = 0; i < 20000; i++) work++;
}

__attribute__((noinline)) static void enter(void) {
  for (;;)
    for (int repetition = 0; repetition < 10; repetition++)
      for (unsigned round = 50; round < 20000u * cpus; round *= 3) {
        int free = 0;
        if (atomic_load_explicit(&taken, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&taken, &free, 1))
          return;
        for (unsigned i = 0; i < round; i++) __builtin_ia32_pause();
      }
}

static void *run(void *unused) {
  while (now() < end) {
    enter();
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    atomic_store(&taken, 0);
    busy(0.001);
  }
  return unused;
}

int main(int count, char **arguments) {
  if (count > 2) cpus = (unsigned)atoi(arguments[2]);
  end = now() + (count > 1 ? atof(arguments[1]) : 1);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}
