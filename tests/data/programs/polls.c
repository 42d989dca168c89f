// A wait that yields, and work that looks like waits. Usage: polls WHAT SECONDS
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct ring {
  volatile uint32_t tail;
  char between[60];
  volatile uint32_t head;
  uint32_t mask;
  void *slots[8];
};
static struct ring ring;
static volatile int stop;
static volatile uint64_t sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

#define FUNCTION __attribute__((noinline))
// As the receive functions of network drivers.
FUNCTION unsigned burst(struct ring *r, void **out, unsigned n) {
  uint32_t head = r->head, ready = r->tail - head;
  if (ready == 0) return 0;
  if (n > ready) n = ready;
  for (unsigned i = 0; i < n; i++) out[i] = r->slots[(head + i) & r->mask];
  r->head = head + n;
  return n;
}
FUNCTION void wait_politely(void) {
  while (!stop) sched_yield();
}

// Work: a queue that is never empty, and work that often asks what time it is.
FUNCTION void drain(void) {
  void *out[8];
  while (!stop) {
    ring.tail += 5;
    unsigned n = burst(&ring, out, 8);
    for (unsigned i = 0; i < n; i++) sink += (uint64_t)(uintptr_t)out[i];
  }
}
FUNCTION void work_by_the_clock(double end) {
  uint64_t sum = 1;
  while (now() < end)
    for (int i = 0; i < 500; i++) sum = sum * 6364136223846793005u + 1442695040888963407u;
  sink = sum;
}

static void *ender(void *seconds) {
  usleep(1000000 * atof(seconds));
  stop = 1;
  ring.tail++;
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const char *what = argv[1];
  double seconds = atof(argv[2]);
  pthread_t thread;
  pthread_create(&thread, NULL, ender, argv[2]);
  if (!strcmp(what, "yield")) wait_politely();
  if (!strcmp(what, "drain")) drain();
  if (!strcmp(what, "clock")) work_by_the_clock(now() + seconds);
  pthread_join(thread, NULL);
  return 0;
}
