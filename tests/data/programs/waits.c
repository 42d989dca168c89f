// Ways to wait, one thread each, named after it. Usage: waits NAME|all CPU_SECONDS
//
// Whoever is waited for never comes: main ends the program.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION static __attribute__((noinline))
#define APART __attribute__((aligned(128)))
#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
static inline uint64_t ticks(void) { return __builtin_ia32_rdtsc(); }
#else
#define PAUSE() __asm__ volatile("yield")
static inline uint64_t ticks(void) {
  uint64_t value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}
#endif

// Locks that are taken, flags that are not set.
APART static atomic_int taken = 1;
APART static volatile int flag;
APART static volatile uint64_t limit = UINT64_MAX;

FUNCTION void ttas(void) {
  while (atomic_load(&taken) || atomic_exchange(&taken, 1)) {}
}
FUNCTION void tas(void) {
  while (atomic_exchange_explicit(&taken, 1, memory_order_acquire)) {}
}
FUNCTION void cmpxchg(void) {
  int free = 0;
  while (!atomic_compare_exchange_weak(&taken, &free, 1)) free = 0;
}
FUNCTION void backoff(void) {
  for (int wait = 1; atomic_load(&taken); wait = wait < 64 ? 2 * wait : wait)
    for (int i = 0; i < wait; i++) PAUSE();
}
APART static struct { atomic_uint next, serving; } tickets = {1, 0};
FUNCTION void ticket(void) {
  unsigned mine = atomic_fetch_add(&tickets.next, 1);
  while (atomic_load_explicit(&tickets.serving, memory_order_acquire) != mine) {}
}
FUNCTION void ticket_pause(void) {
  unsigned mine = atomic_fetch_add(&tickets.next, 1);
  for (;;) {
    unsigned ahead = mine - atomic_load(&tickets.serving);
    if (ahead == 0) break;
    while (ahead-- > 0) PAUSE();
  }
}
struct node { struct node *_Atomic next; atomic_bool is_locked; };
FUNCTION void mcs(void) {
  static struct node first = {.is_locked = true};
  static struct node *_Atomic tail = &first;
  struct node mine = {.is_locked = true};
  struct node *before = atomic_exchange(&tail, &mine);
  atomic_store(&before->next, &mine);
  while (atomic_load_explicit(&mine.is_locked, memory_order_acquire)) {}
}
FUNCTION void clh(void) {
  static struct node first = {.is_locked = true};
  static struct node *_Atomic tail = &first;
  static struct node mine = {.is_locked = true};
  struct node *before = atomic_exchange(&tail, &mine);
  while (atomic_load_explicit(&before->is_locked, memory_order_acquire)) PAUSE();
}
FUNCTION void seqlock(void) {
  static atomic_uint sequence = 1;
  static volatile uint64_t value;
  unsigned before;
  uint64_t read;
  do {
    while ((before = atomic_load_explicit(&sequence, memory_order_acquire)) & 1) {}
    read = value;
  } while (atomic_load(&sequence) != before);
  limit = read;
}
FUNCTION void barrier(void) {
  static struct { atomic_int left; atomic_bool sense; } all = {2, false};
  bool sense = !atomic_load(&all.sense);
  if (atomic_fetch_sub(&all.left, 1) == 1) return;
  while (atomic_load(&all.sense) != sense) {}
}
FUNCTION void peterson(void) {
  static atomic_bool wants[2] = {false, true};
  static atomic_int turn;
  atomic_store(&wants[0], true);
  atomic_store(&turn, 1);
  while (atomic_load(&wants[1]) && atomic_load(&turn) == 1) {}
}
FUNCTION void volatile_flag(void) {
  while (!flag) {}
}
FUNCTION void status_bit(void) {
  static volatile uint8_t status;
  while (!(status & 0x40)) {}
}
FUNCTION void progress(void) {
  static volatile double done = 0.25;
  while (done < 1.0) {}
}
struct queue { struct { volatile uint32_t head, tail; } *ends; };
FUNCTION void through_pointer(struct queue *queue) {
  while (!flag && queue->ends->head == queue->ends->tail) {}
}
FUNCTION void pointers(void) {
  struct queue queue = {calloc(1, 8)};
  through_pointer(&queue);
}
FUNCTION void rw_lock(void) {
  static atomic_int readers = -1;
  int seen = atomic_load(&readers);
  while (seen < 0 || !atomic_compare_exchange_weak(&readers, &seen, seen + 1))
    seen = atomic_load(&readers);
}
FUNCTION void until_time(void) {
  struct timespec t;
  do clock_gettime(CLOCK_MONOTONIC, &t);
  while (!flag && t.tv_sec < (time_t)(limit >> 8));
}
FUNCTION void until_ticks(void) {
  uint64_t start = ticks();
  while (!flag && ticks() - start < limit) {}
}
// Those that count their turns.
FUNCTION uint64_t bounded(uint64_t most) {
  uint64_t turns = 0;
  while (turns < most && !flag) turns++;
  return turns;
}
FUNCTION void count_up(void) { limit -= bounded(UINT64_MAX) == 7; }
FUNCTION long long retries(long long left) {
  while (left-- > 0 && atomic_load(&taken)) PAUSE();
  return left;
}
FUNCTION void count_down(void) { flag += retries(INT64_MAX) == 7; }
FUNCTION uint64_t rarely(void) {
  uint64_t turns = 0;
  while (!flag)
    if ((++turns & 0xffff) == 0 && limit < turns) return 0;
  return turns;
}
FUNCTION void look_rarely(void) { limit -= rarely() == 7; }
FUNCTION uint64_t counted_lock(void) {
  uint64_t failed = 0;
  while (atomic_exchange(&taken, 1)) failed++;
  return failed;
}
FUNCTION void count_attempts(void) { limit -= counted_lock() == 7; }

// As the receive functions of network drivers that nothing comes in at.
struct ring { volatile uint32_t tail; char between[60]; volatile uint32_t head; void *slots[8]; };
APART static struct ring rings[4];
FUNCTION unsigned burst(struct ring *ring, void **out, unsigned n) {
  uint32_t head = ring->head, ready = ring->tail - head;
  if (ready == 0) return 0;
  if (n > ready) n = ready;
  for (unsigned i = 0; i < n; i++) out[i] = ring->slots[(head + i) & 7];
  ring->head = head + n;
  return n;
}
static unsigned (*volatile receive)(struct ring *, void **, unsigned) = burst;
static void handle(void **out, unsigned n) {
  for (unsigned i = 0; i < n; i++) limit -= (uintptr_t)out[i];
}
FUNCTION uint64_t polled(void) {
  void *out[8];
  uint64_t empty = 0;
  while (!flag) {
    unsigned n = burst(rings, out, 8);
    handle(out, n);
    empty += n == 0;
  }
  return empty;
}
FUNCTION void empty_polls(void) { limit -= polled() == 7; }
FUNCTION uint64_t polled_through_table(void) {
  void *out[8];
  uint64_t empty = 0, all = 0;
  while (!flag) {
    unsigned n = receive(rings, out, 8);
    handle(out, n);
    all++;
    if (n == 0) empty++;
  }
  return empty + all;
}
FUNCTION void table_polls(void) { limit -= polled_through_table() == 7; }
FUNCTION void try_locks(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_spinlock_t lock;
  pthread_mutex_lock(&mutex);
  pthread_spin_init(&lock, 0);
  pthread_spin_lock(&lock);
  while (pthread_spin_trylock(&lock)) {}
}

FUNCTION void epoll_empty(void) {
  struct epoll_event event = {.events = EPOLLIN};
  int queue = epoll_create1(0), never = eventfd(0, 0);
  epoll_ctl(queue, EPOLL_CTL_ADD, never, &event);
  while (epoll_wait(queue, &event, 1, 0) == 0) {}
}
FUNCTION void poll_empty(void) {
  struct pollfd never = {.fd = eventfd(0, 0), .events = POLLIN};
  while (poll(&never, 1, 0) == 0) {}
}
FUNCTION void receive_empty(void) {
  int ends[2];
  char byte;
  socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
  while (recv(ends[0], &byte, 1, MSG_DONTWAIT) < 0) {}
}

static const struct { const char *name; void (*wait)(void); } ALL[] = {
    {"ttas", ttas}, {"tas", tas}, {"cmpxchg", cmpxchg}, {"backoff", backoff},
    {"ticket", ticket}, {"ticket_pause", ticket_pause}, {"mcs", mcs}, {"clh", clh},
    {"seqlock", seqlock}, {"barrier", barrier}, {"peterson", peterson},
    {"volatile_flag", volatile_flag}, {"status_bit", status_bit}, {"progress", progress},
    {"pointers", pointers}, {"rw_lock", rw_lock}, {"until_time", until_time},
    {"until_ticks", until_ticks}, {"count_up", count_up}, {"count_down", count_down},
    {"look_rarely", look_rarely}, {"count_attempts", count_attempts},
    {"empty_polls", empty_polls}, {"table_polls", table_polls},
    {"try_locks", try_locks}, {"epoll_empty", epoll_empty}, {"poll_empty", poll_empty},
    {"receive_empty", receive_empty},
};

static void *start(void *wait) {
  ((void (*)(void))wait)();
  return NULL;
}

// Threads are many and others may need the CPUs: what counts is that each one had its CPU time.
int main(int argc, char **argv) {
  pthread_t threads[sizeof ALL / sizeof *ALL];
  size_t started = 0;
  if (argc < 3 || nice(5) == -1) return 2;
  for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
    if (strcmp(argv[1], "all") && strcmp(argv[1], ALL[i].name)) continue;
    pthread_create(&threads[started], NULL, start, (void *)ALL[i].wait);
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
