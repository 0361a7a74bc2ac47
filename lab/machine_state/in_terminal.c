// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs a program in a terminal of its own, as over a connection, then closes the terminal and kills the program.
 *
 *   in_terminal FILE PROGRAM ARGUMENTS...
 *
 * Both happen when FILE is there, or after a minute; whether the program had ended by then is printed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	int terminal, status = 0, ended;
	pid_t program;
	char text[4096];

	if (count < 3) {
		fputs("usage: in_terminal FILE PROGRAM ARGUMENTS...\n", stderr);
		return 2;
	}
	/* It is there where a service manager runs. */
	mkdir("/dev/pts", 0755);
	if (access("/dev/pts/ptmx", F_OK))
		mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666");
	terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal < 0 || grantpt(terminal) || unlockpt(terminal)) {
		perror("terminal");
		return 1;
	}
	program = fork();
	if (!program) {
		int end;

		setsid();
		end = open(ptsname(terminal), O_RDWR);
		if (end < 0 || ioctl(end, TIOCSCTTY, 0))
			_exit(126);
		for (int fd = 0; fd < 3; fd++)
			dup2(end, fd);
		if (end > 2)
			close(end);
		execvp(arguments[2], arguments + 2);
		_exit(127);
	}
	for (int look = 0; look < 600 && access(arguments[1], F_OK); look++) {
		struct pollfd ready = { terminal, POLLIN, 0 };

		/* Nobody reads it; what is said must not fill it up. */
		if (poll(&ready, 1, 100) > 0 && read(terminal, text, sizeof(text)) < 0)
			usleep(100000);
	}
	ended = waitpid(program, &status, WNOHANG) == program;
	close(terminal);
	if (!ended) {
		kill(program, SIGKILL);
		waitpid(program, &status, 0);
	}
	printf("%s %d\n", ended ? "ended" : "killed", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}
