// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Faults that need no kernel code, each logged in the words of the module:
 *
 *   user_faults spin CPU PRIO US COUNT PERIOD_MS   a FIFO thread that spins now and then
 *   user_faults fair CPU SECONDS                   a FIFO-50 spinner above a fair hog: the fair server
 *   user_faults throttle CPU SECONDS               the same spinner alone: throttling, where there is any
 *   user_faults inversion CPU COUNT WORD           low holds what high wants, middle runs; the word is the log's, and says
 *                                                  how: a mutex, -2 and -3 a chain of so many, -rwlock, -pi where the
 *                                                  mutex has priority inheritance, -pipe where high waits for low to write
 *   user_faults inherited CPU COUNT                a fair thread holds a mutex that high waits for, and runs as high
 *   user_faults chained CPU COUNT                  the same through a second mutex and the thread that holds that
 *   user_faults own CPU COUNT WORD                 a thread to follow, and one above it that spins now and then
 *   user_faults raise PID PRIO                     gives another thread SCHED_FIFO
 *   user_faults heeding CPU PRIO US PERIOD_MS FILE VALUE   a FIFO thread that spins, but not while the file has the value;
 *                                                  until it is killed, without a log
 *
 * Times are CLOCK_MONOTONIC in ns. The log is written at the end, to standard output.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ll
#define RECORDS 4096

struct record {
	int seq;
	int64_t start;
	int64_t end;
};

static struct record records[RECORDS];
static int taken;
static int cpu;
static _Atomic int over;

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

static int64_t spin_until(int64_t when)
{
	int64_t at = now();

	while (at < when)
		at = now();
	return at;
}

/* For what one thread of the program does; no lock. */
static void note(int64_t start, int64_t end)
{
	if (taken < RECORDS)
		records[taken] = (struct record){ taken + 1, start, end };
	taken++;
}

static void print_log(const char *fault, const char *kind, const char *name)
{
	int held = taken < RECORDS ? taken : RECORDS;

	for (int i = 0; i < held; i++)
		printf("seq=%d fault=%s kind=%s cpu=%d from=-1 start=%lld end=%lld name=%s\n",
		       records[i].seq, fault, kind, cpu, (long long)records[i].start,
		       (long long)records[i].end, name);
	printf("dropped=%d\n", taken - held);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Name, place and priority of the calling thread; 0 is SCHED_OTHER. */
static void become_on(int place, const char *name, int prio)
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

static void become(const char *name, int prio)
{
	become_on(cpu, name, prio);
}

static void spin(int prio, int64_t ns, int count, int64_t period)
{
	int64_t next = now() + period;

	become("user_spin", prio);
	for (int i = 0; i < count; i++, next += period) {
		sleep_until(next + i * 2654435769u % 1000 * 1000);
		int64_t start = now();
		note(start, spin_until(start + ns));
	}
	print_log("user-spin", "thread", "user_spin");
}

static int has(const char *file, const char *value)
{
	char text[64] = "";
	FILE *from = fopen(file, "r");

	if (!from)
		return 0;
	if (!fgets(text, sizeof(text), from))
		text[0] = 0;
	fclose(from);
	text[strcspn(text, "\n")] = 0;
	return !strcmp(text, value);
}

/* The fault that a setting cures. */
static void heeding(int prio, int64_t ns, int64_t period, const char *file, const char *value)
{
	int64_t next = now() + period;

	become("user_spin", prio);
	for (;;) {
		sleep_until(next);
		if (!has(file, value))
			spin_until(now() + ns);
		/* What it was late for is left out. */
		while (next <= now())
			next += period;
	}
}

/* Runs whenever it is let; each stretch in which it was is noted. */
static void *fair_hog(void *unused)
{
	int64_t start, last;

	(void)unused;
	become("user_hog", 0);
	for (start = last = now(); !over;) {
		int64_t at = now();

		/* What is shorter than the server's pause is the emulator's. */
		if (at - last > 100 * MS) {
			if (last - start > MS)
				note(start, last);
			start = at;
		}
		last = at;
	}
	return NULL;
}

static void fair(int64_t seconds)
{
	int64_t end = now() + seconds * 1000 * MS;
	pthread_t hog;

	/* Before the spinner is one: a thread inherits the policy, and this one would never come to change it. */
	if (pthread_create(&hog, NULL, fair_hog, NULL))
		fail("pthread_create");
	become("user_spin", 50);
	spin_until(end);
	over = 1;
	pthread_join(hog, NULL);
	print_log("fair-server", "fair-server", "user_hog");
}

/* Throttling takes 50 ms of each second; shorter gaps are the emulator's. */
static void throttle(int64_t seconds)
{
	int64_t last = now(), end = last + seconds * 1000 * MS;

	become("user_spin", 50);
	while (last < end) {
		int64_t at = now();

		if (at - last > 35 * MS)
			note(last, at);
		last = at;
	}
	print_log("throttle", "throttled", "user_spin");
}

/* Locks of a chain: high wants the first, whose holder wants the next. */
#define CHAIN 3
static pthread_mutex_t mutexes[CHAIN];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int ends[2];
static const char *how = "";
static int chain = 1;
static _Atomic int64_t first;
static int cycles;

/* Nothing happens before it is known when the first one is. */
static int64_t cycle(int i)
{
	while (!first)
		sleep_until(now() + 50 * MS);
	return first + i * 400 * MS;
}

/* The threads are at their places, to be found by whoever looks for the one that suffers, who makes the file. */
static int64_t when_asked(void)
{
	while (access("begin", F_OK))
		sleep_until(now() + 50 * MS);
	unlink("begin");
	return now() + 500 * MS;
}

static int is(const char *word)
{
	return !strcmp(how, word);
}

static void take(int at, int high)
{
	if (!is("rwlock"))
		pthread_mutex_lock(&mutexes[at]);
	else if (high)
		pthread_rwlock_rdlock(&rwlock);
	else
		pthread_rwlock_wrlock(&rwlock);
}

static void give(int at)
{
	if (is("rwlock"))
		pthread_rwlock_unlock(&rwlock);
	else
		pthread_mutex_unlock(&mutexes[at]);
}

/* The end of the chain: where high inherits its priority to it, the middle one does not come between. */
static void *low(void *unused)
{
	int64_t until = (is("pi") ? 20 : 3) * MS;

	(void)unused;
	become("inv_low", 5);
	for (int i = 0; i < cycles; i++) {
		if (is("pipe")) {
			sleep_until(cycle(i) + 20 * MS);
			if (write(ends[1], "x", 1) != 1)
				fail("write");
			continue;
		}
		sleep_until(cycle(i) - 8 * MS);
		take(chain - 1, 0);
		spin_until(cycle(i) + until);
		give(chain - 1);
	}
	return NULL;
}

/* Holds the lock of its number and waits for the next. */
static void *link_of(void *number)
{
	int at = (intptr_t)number;
	char name[16];

	snprintf(name, sizeof(name), "inv_link_%d", at);
	become(name, 10);
	for (int i = 0; i < cycles; i++) {
		sleep_until(cycle(i) - 2 * (at + 1) * MS);
		pthread_mutex_lock(&mutexes[at]);
		pthread_mutex_lock(&mutexes[at + 1]);
		pthread_mutex_unlock(&mutexes[at + 1]);
		pthread_mutex_unlock(&mutexes[at]);
	}
	return NULL;
}

static void *middle(void *unused)
{
	(void)unused;
	become("inv_middle", 20);
	for (int i = 0; i < cycles; i++) {
		sleep_until(cycle(i) + MS);
		if (!is("pipe"))
			spin_until(cycle(i) + 25 * MS);
	}
	return NULL;
}

static void *high(void *unused)
{
	char byte;

	(void)unused;
	become("inv_high", 30);
	for (int i = 0; i < cycles; i++) {
		sleep_until(cycle(i));
		int64_t start = now();
		if (is("pipe")) {
			if (read(ends[0], &byte, 1) != 1)
				fail("read");
			note(start, now());
			continue;
		}
		take(0, 1);
		note(start, now());
		give(0);
	}
	return NULL;
}

static void start_all(void *(*const parts[])(void *), int count, int asked)
{
	pthread_t threads[8];

	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, parts[i], (void *)(intptr_t)(i - 3)))
			fail("pthread_create");
	first = asked ? when_asked() : now() + 500 * MS;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void inversion(int count, const char *word)
{
	void *(*const parts[])(void *) = { low, middle, high, link_of, link_of };
	pthread_mutexattr_t attr;

	how = strchr(word, '-') ? strchr(word, '-') + 1 : "";
	if (how[0] >= '2' && how[0] <= '0' + CHAIN)
		chain = how[0] - '0';
	pthread_mutexattr_init(&attr);
	if (is("pi"))
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	for (int i = 0; i < CHAIN; i++)
		pthread_mutex_init(&mutexes[i], &attr);
	if (is("pipe") && pipe(ends))
		fail("pipe");
	cycles = count;
	start_all(parts, 2 + chain, 1);
	print_log(word, "priority-inversion", "inv_low");
}

static pthread_mutex_t inheriting, between;
static int chained;
static _Atomic int64_t wanted;

/* Fair, until the other one waits: then it has that one's priority, and whatever is below does not run. */
static void *inherited_low(void *unused)
{
	(void)unused;
	become("inh_low", 0);
	for (int i = 0; i < cycles; i++) {
		sleep_until(cycle(i) - 4 * MS);
		pthread_mutex_lock(&inheriting);
		while (wanted < cycle(i))
			;
		int64_t start = wanted;
		int64_t end = spin_until(start + 20 * MS);
		pthread_mutex_unlock(&inheriting);
		note(start, end);
	}
	return NULL;
}

/* In every other turn the fair one has been pushed off the CPU before, and is switched to with the priority it inherits. */
static void *inherited_middle(void *unused)
{
	(void)unused;
	become("inh_middle", 50);
	for (int i = 1; i < cycles; i += 2) {
		sleep_until(cycle(i) - 2 * MS);
		spin_until(cycle(i) + MS);
	}
	return NULL;
}

/* Between the two in a chain: it holds what the urgent one waits for, and waits itself. */
static void *inherited_link(void *unused)
{
	(void)unused;
	become_on(!cpu, "inh_link", 0);
	for (int i = 0; i < cycles; i++) {
		sleep_until(cycle(i) - 3 * MS);
		pthread_mutex_lock(&between);
		pthread_mutex_lock(&inheriting);
		pthread_mutex_unlock(&inheriting);
		pthread_mutex_unlock(&between);
	}
	return NULL;
}

/* On the other CPU: it takes no time from anybody itself. */
static void *inherited_high(void *unused)
{
	(void)unused;
	become_on(!cpu, "inh_high", 90);
	for (int i = 0; i < cycles; i++) {
		sleep_until(cycle(i));
		wanted = now();
		pthread_mutex_lock(chained ? &between : &inheriting);
		pthread_mutex_unlock(chained ? &between : &inheriting);
	}
	return NULL;
}

static void inherited(int count, const char *word)
{
	void *(*const parts[])(void *) = { inherited_low, inherited_middle, inherited_high, inherited_link };
	pthread_mutexattr_t attr;

	chained = !strcmp(word, "chained");
	pthread_mutexattr_init(&attr);
	if (pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) || pthread_mutex_init(&inheriting, &attr) ||
	    pthread_mutex_init(&between, &attr))
		fail("pthread_mutex_init");
	cycles = count;
	start_all(parts, 3 + chained, 0);
	print_log(word, "thread", "inh_low");
}

/* Wakes every 5 ms for the one that looks for late wake-ups. */
static void *own_victim(void *unused)
{
	(void)unused;
	become("own_victim", 30);
	for (int64_t at = now(); !over; at += 5 * MS)
		sleep_until(at);
	return NULL;
}

static void *own_hog(void *unused)
{
	(void)unused;
	become("own_hog", 60);
	cycle(0);
	for (int i = 0; i < cycles; i++) {
		/* Half of the usual pause. */
		sleep_until((first + cycle(i)) / 2);
		int64_t start = now();
		note(start, spin_until(start + 20 * MS));
	}
	over = 1;
	return NULL;
}

static void own(int count, const char *word)
{
	void *(*const parts[])(void *) = { own_victim, own_hog };

	cycles = count;
	start_all(parts, 2, 1);
	print_log(word, "thread", "own_hog");
}

static void raise_other(int pid, int prio)
{
	struct sched_param param = { .sched_priority = prio };

	if (sched_setscheduler(pid, SCHED_FIFO, &param))
		fail("sched_setscheduler");
}

int main(int argc, char **argv)
{
	int64_t n[6] = { 0 };

	if (argc < 4 || argc > 8) {
		fprintf(stderr, "usage: user_faults spin|fair|throttle|inversion|inherited|chained|own|raise|heeding ...\n");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		n[i - 2] = atoll(argv[i]);
	cpu = n[0];
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("mlockall");
	if (!strcmp(argv[1], "spin"))
		spin(n[1], n[2] * 1000, n[3], n[4] * MS);
	else if (!strcmp(argv[1], "fair"))
		fair(n[1]);
	else if (!strcmp(argv[1], "throttle"))
		throttle(n[1]);
	else if (!strcmp(argv[1], "inversion"))
		inversion(n[1], argv[argc - 1]);
	else if (!strcmp(argv[1], "inherited") || !strcmp(argv[1], "chained"))
		inherited(n[1], argv[1]);
	else if (!strcmp(argv[1], "own"))
		own(n[1], argv[argc - 1]);
	else if (!strcmp(argv[1], "heeding") && argc == 8)
		heeding(n[1], n[2] * 1000, n[3] * MS, argv[6], argv[7]);
	else if (!strcmp(argv[1], "raise"))
		raise_other(n[0], n[1]);
	else
		return 2;
	return 0;
}
