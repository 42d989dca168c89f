// Runs a command and notes what the kernel says of each of its threads once that
// has ended: CPU time and time queued, to the last moment. A thread that is traced
// stays until its tracer has seen that it is gone, and with it its schedstat.
//
// Usage: exits NOTE COMMAND…. This process and its parent run on after the note, for
// nobody knows how long: they are named in it, with what the parent's usage has of this one.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1 << 22 };

static double wait_s;
static long threads;

static void add(const char *path)
{
	unsigned long long ran, waited;
	FILE *file = fopen(path, "r");

	if (!file || fscanf(file, "%llu %llu", &ran, &waited) != 2) {
		fprintf(stderr, "%s cannot be read\n", path);
		exit(1);
	}
	fclose(file);
	wait_s += waited * 1e-9;
	threads++;
}

// Lets a thread that has stopped go on; its first stop is its maker's.
static void go_on(pid_t thread)
{
	static unsigned char is_known[MOST];
	int status, signal;

	if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status))
		return;
	signal = WSTOPSIG(status);
	if (status >> 16 || (signal == SIGSTOP && !is_known[thread % MOST]))
		signal = 0;
	is_known[thread % MOST] = 1;
	ptrace(PTRACE_CONT, thread, 0, signal);
}

int main(int argc, char **argv)
{
	long wanted = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
		      PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int status, ended = 1;
	char path[64];
	struct rusage own;
	FILE *note;
	pid_t child;

	if (argc < 3)
		return 2;
	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	waitpid(child, &status, __WALL);
	ptrace(PTRACE_SETOPTIONS, child, 0, wanted);
	ptrace(PTRACE_CONT, child, 0, 0);
	for (;;) {
		siginfo_t what = { 0 };

		if (waitid(P_ALL, 0, &what, WEXITED | WSTOPPED | __WALL | WNOWAIT))
			break;
		if (what.si_code == CLD_TRAPPED || what.si_code == CLD_STOPPED) {
			go_on(what.si_pid);
			continue;
		}
		snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", what.si_pid, what.si_pid);
		add(path);
		waitpid(what.si_pid, &status, __WALL);
		if (what.si_pid == child)
			ended = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	getrusage(RUSAGE_SELF, &own);
	note = fopen(argv[1], "w");
	fprintf(note, "{\"wait_s\": %f, \"threads\": %ld, \"wrappers\": [%d, %d], ", wait_s,
		threads, getpid(), getppid());
	fprintf(note, "\"own\": {\"cpu_s\": %f, \"switches\": %ld}}\n",
		own.ru_utime.tv_sec + own.ru_stime.tv_sec +
			1e-6 * (own.ru_utime.tv_usec + own.ru_stime.tv_usec),
		own.ru_nvcsw + own.ru_nivcsw);
	return fclose(note) ? 1 : ended;
}
