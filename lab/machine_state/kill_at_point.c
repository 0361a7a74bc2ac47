// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs a program and kills it at a point of its way, from outside.
 *
 *   kill_at_point REPORT POINT PROGRAM ARGUMENTS...
 *
 * The points are counted from 1: before each call that flushes a file, and after each call that changes the machine (a write below
 * /proc or /sys, a folder made or removed there, a thread's mask or policy). After a flush is no point of its own: what a killed
 * program has written is in the file either way. POINT 0 kills nowhere, POINT -3 waits for eight seconds at the third. REPORT gets a line per point that was passed, the one of the kill last: its number, what it is, and
 * the file. Points of its children are not counted: what it left behind goes on.
 *
 * A filter (seccomp(2)) stops the program at these calls alone: it makes tens of thousands of others, and to stop it at each takes
 * minutes in an emulator. Children inherit the filter, whose calls fail without a tracer; so one stays with them to their end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>

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

/* The calls that kind_of() looks at. */
static const unsigned int looked_at[] = {
	SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_sync_file_range, SYS_msync, SYS_sync,
	SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_pwritev2,
	SYS_mkdirat, SYS_unlinkat,
#ifdef SYS_mkdir
	SYS_mkdir, SYS_rmdir,
#endif
	SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setattr, SYS_sched_setparam,
};

#define LOOKED_AT (sizeof(looked_at) / sizeof(looked_at[0]))

/* Has this process, and all that comes of it, stopped at those calls. */
static int filter(void)
{
	struct sock_filter code[LOOKED_AT + 3];
	struct sock_fprog all = { LOOKED_AT + 3, code };

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < LOOKED_AT; i++)
		code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, looked_at[i], LOOKED_AT - i, 0);
	code[LOOKED_AT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[LOOKED_AT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	/* Without "no new privileges", which the program would be told of: the guest's user is root. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

/* Whether it is a thread of the program, and none of its children. */
static int is_of_the_program(pid_t id)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", program, id);
	return !access(path, F_OK);
}

/* A call that is looked at begins; whether its end is to be seen, too. */
static int begins(pid_t id)
{
	struct thread *thread;
	struct __ptrace_syscall_info call;

	if (!is_of_the_program(id) || ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof(call), &call) <= 0)
		return 0;
	thread = thread_of(id);
	thread->kind = kind_of(id, &call, thread->file);
	if (thread->kind == FLUSH)
		point("before-flush", thread->file);
	thread->entered = thread->kind != NONE && thread->kind != FLUSH;
	return thread->entered;
}

static void ends(pid_t id)
{
	static const char *const after[] = { "", "", "after-write", "after-folder", "after-thread" };
	struct thread *thread = thread_of(id);

	if (thread->entered)
		point(after[thread->kind], thread->file);
	thread->entered = 0;
}

/* Follows the program and what comes of it to the end of all; its code goes to the pipe. */
static void follow(int pipe_end)
{
	int status;

	for (;;) {
		pid_t id = waitpid(-1, &status, __WALL);
		int how = PTRACE_CONT;
		long signal = 0;

		if (id < 0)
			return;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (id == program) {
				int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

				if (write(pipe_end, &code, sizeof(code)) != sizeof(code))
					return;
			}
			thread_of(id)->id = 0;
			continue;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8))
			how = begins(id) ? PTRACE_SYSCALL : PTRACE_CONT;
		else if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			ends(id);
		else if (!(status >> 16) && WSTOPSIG(status) != SIGSTOP)
			signal = WSTOPSIG(status);
		ptrace(how, id, NULL, signal);
	}
}

static int trace(char **arguments, int pipe_end)
{
	int status;

	program = fork();
	if (!program) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		if (filter())
			_exit(126);
		execvp(arguments[3], arguments + 3);
		_exit(127);
	}
	waitpid(program, &status, 0);
	ptrace(PTRACE_SETOPTIONS, program, NULL,
	       PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
		       PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC);
	ptrace(PTRACE_CONT, program, NULL, NULL);
	follow(pipe_end);
	return 0;
}

int main(int count, char **arguments)
{
	int ends_of_pipe[2], code = 1;

	if (count < 4) {
		fputs("usage: kill_at_point REPORT POINT PROGRAM ARGUMENTS...\n", stderr);
		return 2;
	}
	report = fopen(arguments[1], "we");
	if (!report || pipe(ends_of_pipe)) {
		perror(arguments[1]);
		return 1;
	}
	deadly = atol(arguments[2]);
	if (!fork()) {
		close(ends_of_pipe[0]);
		return trace(arguments, ends_of_pipe[1]);
	}
	close(ends_of_pipe[1]);
	if (read(ends_of_pipe[0], &code, sizeof(code)) != sizeof(code))
		return 1;
	return code;
}
