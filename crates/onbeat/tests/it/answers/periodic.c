/* A real-time program for a test: its thread comes late, wakes every 2 ms by an absolute time, and
 * works for 4 ms in every fortieth cycle. Arguments: CPU, cycles, exit code. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD = 2000000, WORK = 50000, LONG_WORK = 4000000 };

static int cycles;

static void work(long ns)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	long long end = now.tv_sec * 1000000000LL + now.tv_nsec + ns;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec * 1000000000LL + now.tv_nsec < end);
}

static void *control(void *unused)
{
	struct timespec next;
	pthread_setname_np(pthread_self(), "control");
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int cycle = 0; cycle < cycles; cycle++) {
		next.tv_nsec += PERIOD;
		if (next.tv_nsec >= 1000000000) {
			next.tv_sec++;
			next.tv_nsec -= 1000000000;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		work(cycle % 40 == 39 ? LONG_WORK : WORK);
	}
	return unused;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 100;
	cycles = atoi(argv[2]);
	cpu_set_t cpu;
	CPU_ZERO(&cpu);
	CPU_SET(atoi(argv[1]), &cpu);
	struct sched_param priority = { .sched_priority = 80 };
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &priority);
	pthread_attr_setaffinity_np(&attributes, sizeof cpu, &cpu);
	usleep(50000);
	if (pthread_create(&thread, &attributes, control, NULL))
		return 101;
	pthread_join(thread, NULL);
	return atoi(argv[3]);
}
