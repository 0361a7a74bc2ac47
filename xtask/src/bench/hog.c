// A SCHED_FIFO thread that takes a CPU for known times, which `probe spin` has to find.
// hog CPU TIMES MS: each line the begin (CLOCK_MONOTONIC) and the length of one, in ns.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}
int main(int count, char **words) {
    if (count != 4) return 2;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(atoi(words[1]), &only);
    struct sched_param priority = {.sched_priority = 50};
    if (sched_setaffinity(0, sizeof only, &only) || sched_setscheduler(0, SCHED_FIFO, &priority))
        return 4;
    for (int i = atoi(words[2]); i > 0; i--) {
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        long long begin = now(), end = begin;
        while (end - begin < atoi(words[3]) * 1000000LL) end = now();
        printf("%lld %lld\n", begin, end - begin);
    }
}
