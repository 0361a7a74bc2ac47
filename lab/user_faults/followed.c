// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A real-time program that knows its own cycles, for a hunt that follows it:
 *
 *   followed CAUSE CPU COUNT LOG CYCLES
 *
 * A thread of FIFO 50 wakes every 80 ms and works for 20 ms. In every third cycle something keeps it for 40 ms more:
 *
 *   preempted   a thread of FIFO 60 that begins to run while it works
 *   lock        a mutex that a fair thread holds
 *   inherit     the same with priority inheritance
 *   fault       a page whose content comes late
 *   terminal    a terminal whose other end reads late
 *   own         its own work
 *   none        nothing: somebody else's turn
 *
 * With CAUSE servo it wakes every 10 ms and works for 1 ms, for when the whole machine is stopped.
 *
 * LOG gets what kept it, in the words of the module; CYCLES a line with release and end of each cycle. Both are in memory until
 * the end. Times are CLOCK_MONOTONIC in ns.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ll
#define CYCLES 8192
#define LENGTH (40 * MS)
#define PAGE 4096ul
#define FULL (1 << 16)

struct cycle {
	int64_t release;
	int64_t end;
	int64_t kept_from;
	int64_t kept_until;
};

static struct cycle cycles[CYCLES];
static int count;
static int cpu;
static int64_t period = 80 * MS;
static int64_t load = 20 * MS;
static const char *cause;
static sem_t asked;
static _Atomic int held;
static _Atomic int64_t took_from;
static _Atomic int64_t took_until;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void sleep_until(int64_t when)
{
	struct timespec t = { when / 1000000000, when % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

/* So much of the thread's own time. */
static void work(int64_t ns)
{
	struct timespec t;
	int64_t end = 0;

	for (;;) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		int64_t at = t.tv_sec * 1000000000ll + t.tv_nsec;

		if (!end)
			end = at + ns;
		if (at >= end)
			return;
	}
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void become(int place, const char *name, int prio)
{
	struct sched_param param = { .sched_priority = prio };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(place, &set);
	prctl(PR_SET_NAME, name);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
	if (sched_setscheduler(0, prio ? SCHED_FIFO : SCHED_OTHER, &param))
		fail("sched_setscheduler");
}

/* Begins to run while the other works: its timer is set before. */
static void *above(void *unused)
{
	(void)unused;
	become(cpu, "cyc_above", 60);
	for (;;) {
		sem_wait(&asked);
		sleep_until(now() + 2 * MS);
		took_from = now();
		work(LENGTH);
		took_until = now();
	}
	return NULL;
}

static pthread_mutex_t mutex;

/* Fair, on the same CPU: it takes the mutex while the other one sleeps. From another CPU one with priority inheritance would be
 * spun for as long as its holder runs (rtmutex_spin_on_owner). */
static void *holder(void *unused)
{
	(void)unused;
	become(cpu, "cyc_holder", 0);
	for (;;) {
		sem_wait(&asked);
		pthread_mutex_lock(&mutex);
		held = 1;
		while (!took_from)
			;
		int64_t end = took_from + LENGTH;

		while (now() < end)
			;
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static char *pages;
static int faults;

/* Brings a page 40 ms after it was wanted (userfaultfd(2)). */
static void *pager(void *unused)
{
	static char content[PAGE] __attribute__((aligned(PAGE)));
	struct uffd_msg message;

	(void)unused;
	become(!cpu, "cyc_pager", 0);
	while (read(faults, &message, sizeof(message)) == sizeof(message)) {
		struct uffdio_copy copy = { .src = (uintptr_t)content, .len = PAGE };

		sleep_until(now() + LENGTH);
		copy.dst = message.arg.pagefault.address & ~(PAGE - 1);
		if (ioctl(faults, UFFDIO_COPY, &copy))
			fail("UFFDIO_COPY");
	}
	return NULL;
}

static void make_pages(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	size_t size = PAGE * CYCLES;

	pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (pages == MAP_FAILED || faults < 0 || ioctl(faults, UFFDIO_API, &api))
		fail("userfaultfd");
	range.range.start = (uintptr_t)pages;
	range.range.len = size;
	if (ioctl(faults, UFFDIO_REGISTER, &range))
		fail("UFFDIO_REGISTER");
}

static int own_end, other_end;

/* Reads what stands in the terminal, 40 ms after it was asked to. */
static void *reader(void *unused)
{
	static char text[FULL];

	(void)unused;
	become(!cpu, "cyc_reader", 0);
	for (;;) {
		sem_wait(&asked);
		sleep_until(now() + LENGTH);
		struct pollfd there = { .fd = other_end, .events = POLLIN };

		while (poll(&there, 1, 5) > 0 && read(other_end, text, sizeof(text)) > 0)
			;
	}
	return NULL;
}

static void make_terminal(void)
{
	struct termios raw;

	other_end = posix_openpt(O_RDWR | O_NOCTTY);
	if (other_end < 0 || grantpt(other_end) || unlockpt(other_end))
		fail("posix_openpt");
	own_end = open(ptsname(other_end), O_RDWR | O_NOCTTY);
	if (own_end < 0 || tcgetattr(own_end, &raw))
		fail("ptsname");
	cfmakeraw(&raw);
	tcsetattr(own_end, TCSANOW, &raw);
}

/* More than the terminal takes, until somebody reads. */
static void write_much(void)
{
	static const char text[FULL / 2];

	if (write(own_end, text, sizeof(text)) != sizeof(text))
		fail("write");
}

static int locks(void)
{
	return !strcmp(cause, "lock") || !strcmp(cause, "inherit");
}

static void keep(struct cycle *cycle, int at)
{
	if (locks() && !held)
		return;
	if (!strcmp(cause, "preempted")) {
		took_from = took_until = 0;
		sem_post(&asked);
		work(load / 2);
		cycle->kept_from = took_from;
		cycle->kept_until = took_until;
		return;
	}
	if (!strcmp(cause, "own")) {
		work(LENGTH);
		cycle->kept_until = now();
		return;
	}
	cycle->kept_from = now();
	if (locks()) {
		took_from = cycle->kept_from;
		pthread_mutex_lock(&mutex);
	} else if (!strcmp(cause, "fault")) {
		*(volatile char *)(pages + at * PAGE);
	} else if (!strcmp(cause, "terminal")) {
		sem_post(&asked);
		write_much();
	}
	cycle->kept_until = now();
	if (locks())
		pthread_mutex_unlock(&mutex);
}

static void *control(void *unused)
{
	int64_t next = now() + period;

	(void)unused;
	become(cpu, "cyc_control", 50);
	for (int i = 0; i < count; i++, next += period) {
		sleep_until(next);
		cycles[i].release = next;
		cycles[i].kept_from = now();
		work(load);
		if (i % 3 == 2 && strcmp(cause, "none") && strcmp(cause, "servo"))
			keep(&cycles[i], i);
		if (i % 3 == 1 && locks()) {
			took_from = held = 0;
			sem_post(&asked);
		}
		cycles[i].end = now();
	}
	return NULL;
}

static void print(const char *log, const char *all)
{
	FILE *faults = fopen(log, "w"), *list = fopen(all, "w");

	if (!faults || !list)
		fail("fopen");
	for (int i = 0; i < count; i++) {
		struct cycle *one = &cycles[i];

		fprintf(list, "%lld %lld\n", (long long)one->release, (long long)one->end);
		if (one->kept_until > one->kept_from)
			fprintf(faults, "seq=%d fault=cycle-%s kind=%s cpu=%d from=-1 start=%lld end=%lld name=%s\n",
				i, cause, cause, cpu, (long long)one->kept_from, (long long)one->kept_until, cause);
	}
	fprintf(faults, "dropped=0\n");
	if (fclose(faults) || fclose(list))
		fail("fclose");
}

int main(int argc, char **argv)
{
	void *(*helper)(void *) = NULL;
	pthread_t thread, other;
	pthread_mutexattr_t attr;

	if (argc != 6) {
		fprintf(stderr, "usage: followed CAUSE CPU COUNT LOG CYCLES\n");
		return 2;
	}
	cause = argv[1];
	cpu = atoi(argv[2]);
	count = atoi(argv[3]);
	if (count < 0 || count > CYCLES)
		return 2;
	if (!strcmp(cause, "servo"))
		period = 10 * MS, load = MS;
	sem_init(&asked, 0, 0);
	pthread_mutexattr_init(&attr);
	if (!strcmp(cause, "inherit"))
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, &attr);
	memset(cycles, 0, sizeof(cycles));
	if (mlockall(MCL_CURRENT))
		fail("mlockall");
	if (!strcmp(cause, "preempted"))
		helper = above;
	else if (locks())
		helper = holder;
	else if (!strcmp(cause, "fault"))
		helper = pager, make_pages();
	else if (!strcmp(cause, "terminal"))
		helper = reader, make_terminal();
	if (helper && pthread_create(&other, NULL, helper, NULL))
		fail("pthread_create");
	/* The other one is at its place. */
	sleep_until(now() + 100 * MS);
	if (pthread_create(&thread, NULL, control, NULL))
		fail("pthread_create");
	pthread_join(thread, NULL);
	print(argv[4], argv[5]);
	return 0;
}
