/* Waits and work, each function named for what its loops are: the tests compile
   this at every level of optimisation and hold the decoder to the names. */

#if defined(__x86_64__)
#define HINT() __asm__ volatile("pause" ::: "memory")
#define YIELD()                                                                \
    do {                                                                       \
        long result = 24;                                                      \
        __asm__ volatile("mov $24, %%eax\n\tsyscall"                           \
                         : "=a"(result) : : "rcx", "r11", "memory");           \
    } while (0)
#else
#define HINT() __asm__ volatile("yield" ::: "memory")
#define YIELD() __asm__ volatile("mov x8, #124\n\tsvc #0" ::: "x0", "x8", "memory")
#endif

typedef unsigned long size;

/* Looks and hints. */
void polling_flag(volatile int *flag) {
    while (*flag == 0) HINT();
}

void polling_counted(volatile int *flag) {
    for (int i = 0; i < 1000 && *flag == 0; i++) HINT();
}

void polling_exchange(int *lock) {
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) HINT();
}

void polling_compare_exchange(int *lock) {
    int expected = 0;
    while (!__atomic_compare_exchange_n(lock, &expected, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        expected = 0;
        HINT();
    }
}

/* Hints without looking. */
void blind_thirty(void) {
    for (int i = 0; i < 30; i++) HINT();
}

void blind_countdown(void) {
    for (unsigned i = 250; i; --i) HINT();
}

void blind_argument(int times) {
    for (int i = 0; i < times; i++) HINT();
}

/* The Monitor of the .NET Framework: blind inner, looking outer loop. */
int netfx_lock(volatile int *lock, unsigned processors) {
    for (int repetition = 0; repetition < 10; repetition++) {
        unsigned duration = 50;
        do {
            if (*lock == 0 && !__atomic_exchange_n((int *)lock, 1, __ATOMIC_ACQUIRE))
                return 1;
            for (unsigned i = 0; i < duration; i++) HINT();
            duration *= 3;
        } while (duration < 20000 * processors);
    }
    return 0;
}

/* Thirty hints, then a look, as Go's lock2 with its procyield put in. */
void nested_thirty(volatile int *lock) {
    while (*lock) {
        for (int i = 0; i < 30; i++) HINT();
    }
}

/* Looks only. */
void bare_flag(volatile int *flag) {
    while (*flag == 0) {
    }
}

int bare_counted(volatile int *flag) {
    int left = 1500;
    do {
        if (*flag & 1) return 1;
    } while (--left > 0);
    return 0;
}

void yield_until(volatile int *flag) {
    while (*flag == 0) YIELD();
}

/* Work that looks like waiting. */
size work_length(const char *text) {
    size length = 0;
    while (text[length]) length++;
    return length;
}

const char *work_search(const char *text, char wanted, size length) {
    for (size i = 0; i < length; i++)
        if (text[i] == wanted) return text + i;
    return 0;
}

long work_sum(const long *values, size many) {
    long sum = 0;
    for (size i = 0; i < many; i++) sum += values[i];
    return sum;
}

struct node {
    struct node *next;
    long value;
};

struct node *work_walk(struct node *from, long wanted) {
    while (from && from->value != wanted) from = from->next;
    return from;
}

void work_add(long *counter, long by) {
    long before = __atomic_load_n(counter, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(counter, &before, before + by, 0,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
}

void work_copy(char *to, const char *from, size length) {
    for (size i = 0; i < length; i++) to[i] = from[i];
}

double work_polynomial(volatile int *stop) {
    double x = 0.5, sum = 0;
    while (!*stop) {
        sum = sum * x + 1.25;
        x = x < 0.9 ? x + 1e-7 : 0.1;
    }
    return sum;
}

int main(void) { return 0; }
