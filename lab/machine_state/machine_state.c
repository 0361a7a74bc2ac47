// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The state of a machine, a line each: what can be read of its settings, and what its threads may do.
 *
 *   machine_state            everything
 *   machine_state LIST       the files named in LIST, and the threads
 *
 *   PATH<tab>=TEXT           a file's content, with \n \t \\ \xNN; cut at 4,000 bytes, with length and checksum of all that was read
 *   PATH<tab>!NUMBER         it could not be read: the error's number
 *   PATH<tab>@TARGET         a link
 *   PATH<tab>/               a folder
 *   task:TID/START/WHAT<tab>=TEXT    mask, policy, group, memory, name; START in clock ticks since the boot
 *   timers:watchdog<tab>=CPUS        where the lockup detectors' timer is armed
 *   hold:cpu_dma_latency<tab>=US     the limit of wake-up latency that holders of this file ask for together
 *
 * It stands beside onbeat as its witness and shares nothing with it. Nothing is written. Two files are not read, because reading
 * them changes what a later write does (before Linux 6.14): kernel/soft_watchdog, and kernel/nmi_watchdog while watchdog is 0.
 * Those that act when they are read are left out, too.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_READ (1 << 20)
#define MOST_SHOWN 4000
#define MOST_PATH 1024
#define MOST_DEPTH 24

static const char *const roots[] = {
	"/proc/sys", "/proc/irq", "/sys/fs/cgroup", "/sys/devices/system", "/sys/devices/virtual/workqueue",
	"/sys/kernel", "/sys/module",
	/* Other file systems below /sys/kernel: only what rules write. */
	"/sys/kernel/debug/sched",
};

/* Folders of links to devices: each link is followed once, the links below it are not; of some devices only one folder is a setting's. */
static const struct {
	const char *path;
	const char *folder;
} classes[] = {
	{ "/sys/class/net", "" }, { "/sys/class/devfreq", "" }, { "/sys/class/thermal", "" }, { "/sys/block", "/queue" },
	{ "/sys/bus/pci/devices", "/link" },
};

/* These act when they are read. */
static const char *const left_out[] = {
	"/proc/sys/kernel/soft_watchdog", "/proc/sys/vm/stat_refresh", "/proc/sys/vm/drop_caches", "/proc/sys/vm/compact_memory",
};

static int watchdog_is_on;
static char buffer[MOST_READ];

static void ring(int number)
{
	(void)number;
}

/* Bounded, without waiting: a file that blocks is interrupted after two seconds, and says so. */
static ssize_t read_whole(const char *path)
{
	size_t have = 0;
	ssize_t got = 0;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	alarm(2);
	while (have < sizeof(buffer) && (got = read(fd, buffer + have, sizeof(buffer) - have)) > 0)
		have += got;
	got = got < 0 ? -errno : (ssize_t)have;
	alarm(0);
	close(fd);
	return got;
}

static void put_text(const char *text, size_t length)
{
	size_t shown = length < MOST_SHOWN ? length : MOST_SHOWN;
	uint64_t sum = 14695981039346656037ull;

	for (size_t i = 0; i < shown; i++) {
		unsigned char c = text[i];

		if (c == '\n')
			fputs("\\n", stdout);
		else if (c == '\t')
			fputs("\\t", stdout);
		else if (c == '\\')
			fputs("\\\\", stdout);
		else if (c < 32 || c > 126)
			printf("\\x%02x", c);
		else
			putchar(c);
	}
	if (shown < length) {
		for (size_t i = 0; i < length; i++)
			sum = (sum ^ (unsigned char)text[i]) * 1099511628211ull;
		printf("... %zu bytes, %016llx", length, (unsigned long long)sum);
	}
	putchar('\n');
}

static int is_left_out(const char *path)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (!strcmp(path, left_out[i]))
			return 1;
	return !watchdog_is_on && !strcmp(path, "/proc/sys/kernel/nmi_watchdog");
}

static void put_file(const char *path, mode_t mode)
{
	ssize_t got;

	if (is_left_out(path) || !(mode & 0444))
		return;
	got = read_whole(path);
	printf("%s\t", path);
	if (got < 0) {
		printf("!%zd\n", -got);
		return;
	}
	putchar('=');
	put_text(buffer, got);
}

static void put_link(const char *path)
{
	char target[MOST_PATH];
	ssize_t got = readlink(path, target, sizeof(target));

	printf("%s\t@", path);
	put_text(target, got < 0 ? 0 : got);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder, sorted; freed by the caller. */
static size_t names_of(const char *path, char ***names)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t count = 0, room = 0;

	*names = NULL;
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (count == room) {
			room = room ? 2 * room : 64;
			*names = realloc(*names, room * sizeof(**names));
			if (!*names)
				abort();
		}
		(*names)[count++] = strdup(entry->d_name);
	}
	closedir(dir);
	if (count)
		qsort(*names, count, sizeof(**names), by_name);
	return count;
}

static void free_names(char **names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

static void walk(const char *path, dev_t device, int depth)
{
	char below[MOST_PATH], **names;
	size_t count = names_of(path, &names);
	struct stat status;

	for (size_t i = 0; i < count; i++) {
		if (snprintf(below, sizeof(below), "%s/%s", path, names[i]) >= (int)sizeof(below) || lstat(below, &status))
			continue;
		if (S_ISLNK(status.st_mode)) {
			put_link(below);
		} else if (S_ISREG(status.st_mode)) {
			put_file(below, status.st_mode);
		} else if (S_ISDIR(status.st_mode) && status.st_dev == device && depth < MOST_DEPTH) {
			printf("%s\t/\n", below);
			walk(below, device, depth + 1);
		}
	}
	free_names(names, count);
}

static void walk_root(const char *path)
{
	struct stat status;

	if (!lstat(path, &status))
		walk(path, status.st_dev, 0);
}

static void walk_class(const char *path, const char *folder)
{
	char below[MOST_PATH], **names;
	size_t count = names_of(path, &names);
	struct stat status;

	for (size_t i = 0; i < count; i++) {
		snprintf(below, sizeof(below), "%s/%s%s", path, names[i], folder);
		if (!stat(below, &status) && S_ISDIR(status.st_mode))
			walk(below, status.st_dev, 0);
	}
	free_names(names, count);
}

static void put_listed(const char *list)
{
	char line[MOST_PATH];
	struct stat status;
	FILE *file = fopen(list, "r");

	if (!file) {
		perror(list);
		exit(1);
	}
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (lstat(line, &status))
			printf("%s\t!%d\n", line, errno);
		else if (S_ISDIR(status.st_mode))
			printf("%s\t/\n", line);
		else if (S_ISREG(status.st_mode))
			put_file(line, status.st_mode);
	}
	fclose(file);
}

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t least, most;
};

/* The line of a status file that begins with this, without its end. */
static const char *field_of(const char *text, const char *name, int *length)
{
	const char *at = strstr(text, name);

	if (!at)
		return NULL;
	at += strlen(name);
	at += strspn(at, " \t");
	*length = strcspn(at, "\n");
	return at;
}

static void put_task(const char *process, const char *task)
{
	struct attributes attributes = { 0 };
	unsigned long mask[128] = { 0 }, flags;
	unsigned long long start;
	char path[MOST_PATH], name[64];
	const char *field;
	int tid = atoi(task), length, fields;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/stat", process, task);
	got = read_whole(path);
	if (got <= 0)
		return;
	buffer[got < MOST_READ ? got : MOST_READ - 1] = 0;
	field = strrchr(buffer, ')');
	if (!field || !strchr(buffer, '('))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)(field - strchr(buffer, '(') - 1), strchr(buffer, '(') + 1);
	/* After the name: state, then fields 4 to 8, the flags (9), and the start time (22). */
	fields = sscanf(field + 1, " %*c %*d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &flags, &start);
	if (fields != 2)
		return;
	printf("task:%d/%llu/name\t=%s\n", tid, start, name);
	/* PF_KTHREAD, and PF_NO_SETAFFINITY: what nobody may move. */
	/* PF_KTHREAD, PF_NO_SETAFFINITY, PF_WQ_WORKER of include/linux/sched.h */
	printf("task:%d/%llu/kind\t=%s%s%s\n", tid, start, flags & 0x00200000 ? "kernel" : "user",
	       flags & 0x04000000 ? " pinned" : "", flags & 0x00000020 ? " worker" : "");

	got = syscall(SYS_sched_getaffinity, tid, sizeof(mask), mask);
	if (got > 0)
		printf("task:%d/%llu/mask\t=%lx\n", tid, start, mask[0]);
	if (!syscall(SYS_sched_getattr, tid, &attributes, sizeof(attributes), 0)) {
		printf("task:%d/%llu/policy\t=policy %u flags %llu nice %d priority %u", tid, start, attributes.policy,
		       (unsigned long long)attributes.flags, attributes.nice, attributes.priority);
		/* Of the fair policies the kernel's own, changing slice is told here. */
		if (attributes.policy == SCHED_DEADLINE)
			printf(" runtime %llu deadline %llu period %llu", (unsigned long long)attributes.runtime,
			       (unsigned long long)attributes.deadline, (unsigned long long)attributes.period);
		putchar('\n');
	}

	snprintf(path, sizeof(path), "/proc/%s/task/%s/cgroup", process, task);
	got = read_whole(path);
	if (got > 0) {
		printf("task:%d/%llu/group\t=", tid, start);
		put_text(buffer, got);
	}
	snprintf(path, sizeof(path), "/proc/%s/task/%s/status", process, task);
	got = read_whole(path);
	if (got <= 0)
		return;
	buffer[got < MOST_READ ? got : MOST_READ - 1] = 0;
	/* What it is allowed; sched_getaffinity leaves CPUs out that are offline. */
	if ((field = field_of(buffer, "Cpus_allowed_list:", &length)))
		printf("task:%d/%llu/cpus\t=%.*s\n", tid, start, length, field);
	if ((field = field_of(buffer, "Mems_allowed_list:", &length)))
		printf("task:%d/%llu/memory\t=%.*s\n", tid, start, length, field);
}

static void put_tasks(void)
{
	char path[MOST_PATH], **processes, **tasks;
	size_t count = names_of("/proc", &processes), threads;

	for (size_t i = 0; i < count; i++) {
		if (processes[i][0] < '1' || processes[i][0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/task", processes[i]);
		threads = names_of(path, &tasks);
		for (size_t j = 0; j < threads; j++)
			put_task(processes[i], tasks[j]);
		free_names(tasks, threads);
	}
	free_names(processes, count);
}

/* Looks at the timers, and the time between two of them: one whose function runs is in no list, for as long as an emulator holds
 * that CPU. */
#define LOOKS 5
#define BETWEEN_US 100000
#define MOST_CPUS 1024

/* The effect of the files that must not be read. */
static void put_watchdog_timers(void)
{
	static char armed[MOST_CPUS];
	char line[512];

	for (int look = 0; look < LOOKS; look++) {
		FILE *list = fopen("/proc/timer_list", "r");
		int cpu = -1;

		if (!list)
			return;
		if (look)
			usleep(BETWEEN_US);
		while (fgets(line, sizeof(line), list)) {
			sscanf(line, "cpu: %d", &cpu);
			if (strstr(line, "watchdog_timer_fn") && cpu >= 0 && cpu < MOST_CPUS)
				armed[cpu] = 1;
		}
		fclose(list);
	}
	printf("timers:watchdog\t=");
	for (int cpu = 0; cpu < MOST_CPUS; cpu++)
		if (armed[cpu])
			printf("%d ", cpu);
	putchar('\n');
}

/* What programs that hold the file open have asked for, as a binary number. */
static void put_held(void)
{
	if (read_whole("/dev/cpu_dma_latency") == 4)
		printf("hold:cpu_dma_latency\t=%d\n", *(int32_t *)buffer);
}

int main(int count, char **arguments)
{
	struct sigaction action = { .sa_handler = ring };

	sigaction(SIGALRM, &action, NULL);
	watchdog_is_on = read_whole("/proc/sys/kernel/watchdog") > 0 && buffer[0] == '1';
	if (count > 1) {
		put_listed(arguments[1]);
	} else {
		for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++)
			walk_root(roots[i]);
		for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
			walk_class(classes[i].path, classes[i].folder);
	}
	put_watchdog_timers();
	put_held();
	put_tasks();
	return fflush(stdout) ? 1 : 0;
}
