// SPDX-License-Identifier: MIT OR Apache-2.0
/* Reads the clock for so many seconds: a task that wants nothing but its CPU. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
	double end = now() + (count > 1 ? atof(arguments[1]) : 10);
	unsigned long turns = 0;

	while (now() < end)
		turns++;
	printf("%lu turns\n", turns);
	return 0;
}
