// Work that resembles a wait, one thread each, named after it. Usage: work NAME|all CPU_SECONDS
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION static __attribute__((noinline))
#if defined(__x86_64__)
static inline uint64_t ticks(void) { return __builtin_ia32_rdtsc(); }
#else
static inline uint64_t ticks(void) {
  uint64_t value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}
#endif

static volatile int stop;
static volatile uint64_t sink;
static char text[65536], other[65536];
static uint32_t numbers[4096];

FUNCTION void copy(void) {
  while (!stop) memcpy(other + 1, text, sizeof text - 1);
}
FUNCTION void zero(void) {
  static char zeros[1 << 20];
  while (!stop) memset(zeros, 0, sizeof zeros);
}
FUNCTION size_t length_of(const char *s) {
  const char *at = s;
  while (*at) at++;
  return at - s;
}
FUNCTION void length(void) {
  while (!stop) sink = length_of(text);
}
FUNCTION int differs(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a - *b;
}
FUNCTION void compare(void) {
  static char same[sizeof text];
  memcpy(same, text, sizeof text);
  while (!stop) sink = differs(same, text);
}
struct link { struct link *next; uint64_t value; };
FUNCTION void chase(void) {
  static struct link links[1024];
  for (int i = 0; i < 1024; i++) links[i].next = &links[(i * 37 + 1) & 1023];
  const struct link *at = links;
  while (!stop) at = at->next;
  sink = (uintptr_t)at;
}
FUNCTION void ring_of_one(void) {
  static struct link *volatile one;
  static struct link links[2];
  one = links;
  links[0].next = &links[1], links[1].next = &links[0];
  uint64_t sum = 0;
  while (!stop) one = one->next, sum += one->value;
  sink = sum;
}
FUNCTION void lookup(void) {
  static struct { uint32_t key, value; } table[1024];
  for (uint32_t i = 0; i < 700; i++) {
    uint32_t at = i * 2654435761u >> 22;
    while (table[at].key) at = (at + 1) & 1023;
    table[at].key = i + 1;
  }
  uint32_t key = 1;
  while (!stop) {
    uint32_t at = key * 2654435761u >> 22;
    while (table[at].key && table[at].key != key) at = (at + 1) & 1023;
    sink = table[at].value;
    key = key % 900 + 1;
  }
}
static int ascending(const void *a, const void *b) {
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return (left > right) - (left < right);
}
FUNCTION void sorting(void) {
  uint32_t own[1024];
  while (!stop) {
    memcpy(own, numbers, sizeof own);
    qsort(own, 1024, sizeof *own, ascending);
  }
}
FUNCTION void search(void) {
  uint32_t key = 0;
  while (!stop) {
    uint32_t low = 0, high = 4096;
    while (low < high) {
      uint32_t middle = (low + high) / 2;
      if (numbers[middle] < key) low = middle + 1;
      else high = middle;
    }
    sink = low;
    key += 977;
  }
}
FUNCTION uint32_t sum_of(const uint8_t *at, size_t bytes) {
  uint32_t a = 1, b = 0;
  while (bytes--) a += *at++, b += a;
  return a ^ b;
}
FUNCTION void checksum(void) {
  while (!stop) sink = sum_of((const uint8_t *)text, 16);
}
FUNCTION void parser(void) {
  const char *line = "{\"name\": [1, 22, 333, true], \"of\": \"it\"}";
  while (!stop) {
    int state = 0, depth = 0, words = 0;
    for (const char *at = line; *at; at++)
      switch (*at) {
      case '{': case '[': depth++; break;
      case '}': case ']': depth--; break;
      case '"': state ^= 1; words += state; break;
      case ',': words += !state; break;
      }
    sink = depth + words;
  }
}
FUNCTION void fibonacci(void) {
  while (!stop) {
    uint64_t a = 0, b = 1;
    for (int i = 0; i < 90; i++) { uint64_t c = a + b; a = b; b = c; }
    sink = b;
  }
}
FUNCTION void collatz(void) {
  uint64_t from = 27, n = 27;
  while (!stop) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    if (n == 1) n = ++from;
  }
  sink = n;
}
FUNCTION void random_numbers(void) {
  uint64_t x = 88172645463325252ull;
  while (!stop) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  sink = x;
}
FUNCTION void timed(void) {
  uint64_t spent = 0, x = 1;
  while (!stop) {
    uint64_t before = ticks();
    for (int i = 0; i < 40; i++) x = x * 6364136223846793005u + 1;
    spent += ticks() - before;
  }
  sink = x + spent;
}
FUNCTION void statistics(void) {
  static atomic_ulong counts[2];
  while (!stop) atomic_fetch_add(&counts[0], 1);
}
FUNCTION void sequence(void) {
  static atomic_ulong next;
  uint64_t sum = 0;
  while (!stop) sum += atomic_fetch_add(&next, 1);
  sink = sum;
}
FUNCTION void bits(void) {
  uint64_t all = 0;
  for (uint32_t i = 0; !stop; i = (i + 1) & 4095) {
    uint32_t left = numbers[i];
    while (left) left &= left - 1, all++;
  }
  sink = all;
}
FUNCTION void polynomial(void) {
  double x = 0.5, sum = 0;
  while (!stop) { sum = sum * x + 1.25; x = x < 0.9 ? x + 1e-7 : 0.1; }
  sink = sum;
}
FUNCTION void greatest(void) {
  while (!stop) {
    uint32_t most = 0;
    for (int i = 0; i < 4096; i++) most = numbers[i] > most ? numbers[i] : most;
    sink = most;
  }
}
FUNCTION void first_of(void) {
  while (!stop) sink = (uintptr_t)memchr(text, 'z', sizeof text);
}
FUNCTION void prime(void) {
  uint64_t found = 0;
  for (uint32_t n = 3; !stop; n += 2) {
    uint32_t d = 3;
    while (d * d <= n && n % d) d += 2;
    found += d * d > n;
  }
  sink = found;
}

FUNCTION void events(void) {
  struct epoll_event event = {.events = EPOLLIN};
  int queue = epoll_create1(0), source = eventfd(0, EFD_NONBLOCK);
  uint64_t value = 1;
  epoll_ctl(queue, EPOLL_CTL_ADD, source, &event);
  while (write(source, &value, sizeof value) > 0 && epoll_wait(queue, &event, 1, 0) == 1)
    if (read(source, &value, sizeof value) < 0) break;
}
FUNCTION void datagrams(void) {
  int ends[2];
  char packet[64] = "";
  socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
  while (send(ends[1], packet, sizeof packet, 0) > 0)
    recv(ends[0], packet, sizeof packet, MSG_DONTWAIT);
}

static const struct { const char *name; void (*work)(void); } ALL[] = {
    {"copy", copy}, {"zero", zero}, {"length", length}, {"compare", compare},
    {"chase", chase}, {"ring_of_one", ring_of_one}, {"lookup", lookup},
    {"sorting", sorting}, {"search", search}, {"checksum", checksum}, {"parser", parser},
    {"fibonacci", fibonacci}, {"collatz", collatz}, {"random_numbers", random_numbers},
    {"timed", timed}, {"statistics", statistics}, {"sequence", sequence},
    {"bits", bits}, {"polynomial", polynomial},
    {"events", events}, {"datagrams", datagrams},
    {"greatest", greatest}, {"first_of", first_of}, {"prime", prime},
};

static void *start(void *work) {
  ((void (*)(void))work)();
  return NULL;
}

// Threads are many and others may need the CPUs: what counts is that each one had its CPU time.
int main(int argc, char **argv) {
  pthread_t threads[sizeof ALL / sizeof *ALL];
  size_t started = 0;
  if (argc < 3 || nice(5) == -1) return 2;
  memset(text, 'a', sizeof text - 1);
  for (uint32_t i = 0; i < 4096; i++) numbers[i] = i * 2654435761u;
  for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
    if (strcmp(argv[1], "all") && strcmp(argv[1], ALL[i].name)) continue;
    pthread_create(&threads[started], NULL, start, (void *)ALL[i].work);
    pthread_setname_np(threads[started++], ALL[i].name);
  }
  for (size_t i = 0; i < started; i++) {
    clockid_t clock;
    struct timespec used = {0};
    pthread_getcpuclockid(threads[i], &clock);
    while (clock_gettime(clock, &used), used.tv_sec + used.tv_nsec * 1e-9 < atof(argv[2])) usleep(10000);
  }
  _exit(0);
}
