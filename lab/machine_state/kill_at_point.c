// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs a program and kills it at a point of its way, from outside.
 *
 *   kill_at_point REPORT POINT PROGRAM ARGUMENTS...
 *
 * The points are counted from 1: before each call that flushes a file, and after each call that changes the machine (a write below
 * /proc or /sys, a folder made or removed there, a thread's mask or policy). After a flush is no point of its own: what a killed
 * program has written is in the file either way. POINT 0 kills nowhere, POINT -3 waits for eight seconds at the third. REPORT gets a line per point that was passed, the one of the kill last: its number, what it is, and
 * the file. Children of the program are not touched, so that what it left behind goes on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/ptrace.h>

#define MOST_THREADS 256

enum kind { NONE, FLUSH, WRITE, FOLDER, THREAD };

/* A thread that is in a call: `entered` until its end is seen. */
struct thread {
	pid_t id;
	int entered;
	enum kind kind;
	char file[PATH_MAX];
};

static struct thread threads[MOST_THREADS];
static FILE *report;
static long passed, deadly;
static pid_t program;

static struct thread *thread_of(pid_t id)
{
	for (int i = 0; i < MOST_THREADS; i++)
		if (threads[i].id == id)
			return threads + i;
	for (int i = 0; i < MOST_THREADS; i++)
		if (!threads[i].id) {
			threads[i].id = id;
			return threads + i;
		}
	fputs("kill_at_point: too many threads\n", stderr);
	exit(1);
}

static int is_of_the_machine(const char *file)
{
	return !strncmp(file, "/sys/", 5) || (!strncmp(file, "/proc/", 6) && strncmp(file, "/proc/self", 10));
}

static void file_of_descriptor(pid_t id, unsigned long long fd, char *file)
{
	char path[64];
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", id, (int)fd);
	got = readlink(path, file, PATH_MAX - 1);
	file[got < 0 ? 0 : got] = 0;
}

/* The folder that a call with a descriptor and a name works in. */
static void file_of_folder(pid_t id, unsigned long long fd, char *file)
{
	char path[64];
	ssize_t got;

	snprintf(path, sizeof(path), (int)fd == -100 ? "/proc/%d/cwd" : "/proc/%d/fd/%d", id, (int)fd);
	got = readlink(path, file, PATH_MAX - 2);
	file[got < 0 ? 0 : got] = 0;
	strcat(file, "/");
}

static void text_of(pid_t id, unsigned long long address, char *text)
{
	for (size_t at = 0; at < PATH_MAX - sizeof(long); at += sizeof(long)) {
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, id, (void *)(address + at), NULL);
		if (errno) {
			text[at] = 0;
			return;
		}
		memcpy(text + at, &word, sizeof(word));
		if (memchr(&word, 0, sizeof(word)))
			return;
	}
	text[PATH_MAX - 1] = 0;
}

static enum kind kind_of(pid_t id, const struct __ptrace_syscall_info *call, char *file)
{
	unsigned long long argument[] = { call->entry.args[0], call->entry.args[1] };

	switch (call->entry.nr) {
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_syncfs:
	case SYS_sync_file_range:
		file_of_descriptor(id, argument[0], file);
		return FLUSH;
	case SYS_msync:
	case SYS_sync:
		strcpy(file, "memory");
		return FLUSH;
	case SYS_write:
	case SYS_pwrite64:
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
		file_of_descriptor(id, argument[0], file);
		return is_of_the_machine(file) ? WRITE : NONE;
	case SYS_mkdirat:
	case SYS_unlinkat:
		text_of(id, argument[1], file);
		if (file[0] != '/')
			file_of_folder(id, argument[0], file);
		return is_of_the_machine(file) ? FOLDER : NONE;
#ifdef SYS_mkdir
	case SYS_mkdir:
	case SYS_rmdir:
		text_of(id, argument[0], file);
		return is_of_the_machine(file) ? FOLDER : NONE;
#endif
	case SYS_sched_setaffinity:
	case SYS_sched_setscheduler:
	case SYS_sched_setattr:
	case SYS_sched_setparam:
		/* What a program does to itself is no change of the machine. */
		if (!argument[0] || (pid_t)argument[0] == id)
			return NONE;
		snprintf(file, PATH_MAX, "thread %d", (int)argument[0]);
		return THREAD;
	}
	return NONE;
}

static void point(const char *what, const char *file)
{
	fprintf(report, "%ld %s %s\n", ++passed, what, file);
	fflush(report);
	if (passed == deadly)
		kill(program, SIGKILL);
	if (passed == -deadly)
		sleep(8);
}

static void stopped_at_a_call(pid_t id)
{
	static const char *const after[] = { "", "", "after-write", "after-folder", "after-thread" };
	struct thread *thread = thread_of(id);
	struct __ptrace_syscall_info call;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof(call), &call) <= 0)
		return;
	if (call.op == PTRACE_SYSCALL_INFO_ENTRY) {
		thread->entered = 1;
		thread->kind = kind_of(id, &call, thread->file);
		if (thread->kind == FLUSH)
			point("before-flush", thread->file);
	} else if (call.op == PTRACE_SYSCALL_INFO_EXIT && thread->entered) {
		thread->entered = 0;
		if (thread->kind != NONE && thread->kind != FLUSH)
			point(after[thread->kind], thread->file);
	}
}

int main(int count, char **arguments)
{
	int status, code = 1;

	if (count < 4) {
		fputs("usage: kill_at_point REPORT POINT PROGRAM ARGUMENTS...\n", stderr);
		return 2;
	}
	report = fopen(arguments[1], "we");
	if (!report) {
		perror(arguments[1]);
		return 1;
	}
	deadly = atol(arguments[2]);
	program = fork();
	if (!program) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		execvp(arguments[3], arguments + 3);
		_exit(127);
	}
	waitpid(program, &status, 0);
	ptrace(PTRACE_SETOPTIONS, program, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC);
	ptrace(PTRACE_SYSCALL, program, NULL, NULL);
	for (;;) {
		pid_t id = waitpid(-1, &status, __WALL);
		long signal = 0;

		if (id < 0)
			break;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (id == program) {
				code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
				break;
			}
			thread_of(id)->id = 0;
			continue;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			stopped_at_a_call(id);
		else if (!(status >> 16) && WSTOPSIG(status) != SIGSTOP)
			signal = WSTOPSIG(status);
		ptrace(PTRACE_SYSCALL, id, NULL, signal);
	}
	return code;
}
