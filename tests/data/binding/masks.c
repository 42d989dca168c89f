/* Threads that write down the mask with which they begin, as their first
 * action: NUMBER threads by pthread_create, then as many by a bare clone. A
 * line is "NUMBER MASK", the mask as a hexadecimal number. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long masks[1 << 16][16];

static void note(long number) {
    syscall(SYS_sched_getaffinity, 0, sizeof masks[0], masks[number]);
}

static void *by_pthread(void *number) {
    note((long)number);
    return NULL;
}

static int by_clone(void *number) {
    syscall(SYS_sched_getaffinity, 0, sizeof masks[0], masks[(long)number]);
    syscall(SYS_exit, 0);
    return 0;
}

static void show(long number) {
    printf("%ld", number);
    int top = 15;
    while (top > 0 && masks[number][top] == 0)
        top--;
    printf(" %lx", masks[number][top]);
    for (int word = top - 1; word >= 0; word--)
        printf("%016lx", masks[number][word]);
    printf("\n");
}

int main(int argc, char **argv) {
    note(0);
    long many = argc > 1 ? atol(argv[1]) : 8;
    int together = argc > 2;
    pthread_t *threads = calloc(many, sizeof *threads);
    for (long number = 1; number <= many; number++) {
        if (pthread_create(&threads[number - 1], NULL, by_pthread, (void *)number) != 0)
            return 3;
        if (!together)
            pthread_join(threads[number - 1], NULL);
    }
    for (long number = 1; together && number <= many; number++)
        pthread_join(threads[number - 1], NULL);
    for (long number = many + 1; number <= 2 * many && !together; number++) {
        size_t size = 64 * 1024;
        char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pid_t gone = 1;
        int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD
            | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
        if (clone(by_clone, stack + size, flags, (void *)number, NULL, NULL, &gone) < 0)
            return 4;
        while (__atomic_load_n(&gone, __ATOMIC_SEQ_CST) != 0)
            sched_yield();
        munmap(stack, size);
    }
    for (long number = 0; number <= (together ? many : 2 * many); number++)
        show(number);
    return 0;
}
