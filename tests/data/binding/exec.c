/* A second thread that executes the program of the arguments. */
#include <pthread.h>
#include <unistd.h>

static void *executes(void *arguments) {
    char **words = arguments;
    execvp(words[1], words + 1);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 2 || pthread_create(&thread, NULL, executes, argv) != 0)
        return 3;
    pthread_join(thread, NULL);
    return 4;
}
