/* The same control loop with eight mistakes, each marked, each with the name by which
 * `onbeat check` knows it.
 *
 *     cc -O2 -pthread careless.c -o robot-careless && sudo ./robot-careless [SECONDS]
 *
 * README.md explains each of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORD_BYTES 2000
#define RECORDS 500

static _Atomic int ending;

/* Mistake 6, lock-without-inheritance: a plain mutex, shared with the logger, which is nice. */
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static double target = 1.0;

static void fail(const char *what, int error)
{
    fprintf(stderr, "robot: %s: %s\n", what, strerror(error));
    exit(1);
}

static void *control(void *unused)
{
    (void)unused;
    static char *history[RECORDS];
    double position = 0;
    for (uint64_t cycle = 0; !atomic_load(&ending); cycle++) {
        /* Mistake 5, relative-sleep: the cycle's own time is added to each period. */
        struct timespec period = { 0, 1000000 };
        clock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL);

        pthread_mutex_lock(&state_lock);
        double wanted = target;
        pthread_mutex_unlock(&state_lock);
        position += 0.1 * (wanted - position);

        /* Mistake 3, allocation-in-loop: the heap grows for 500 cycles, and is given back. */
        unsigned at = cycle % RECORDS;
        if (at == 0) {
            for (unsigned i = 0; i < RECORDS; i++) {
                free(history[i]);
                history[i] = NULL;
            }
        }
        history[at] = malloc(RECORD_BYTES);
        if (history[at])
            memset(history[at], (int)cycle, RECORD_BYTES);

        /* Mistake 4, writes-in-loop: the loop waits for the console. */
        if (cycle % 100 == 0) {
            printf("cycle %llu at %.3f\n", (unsigned long long)cycle, position);
            fflush(stdout);
        }
    }
    return NULL;
}

static void *logger(void *unused)
{
    (void)unused;
    if (nice(10) == -1 && errno)
        fail("nice", errno);
    while (!atomic_load(&ending)) {
        struct timespec begin, now;
        pthread_mutex_lock(&state_lock);
        /* Six milliseconds of work with the lock held. */
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do {
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 6000000L);
        target = -target;
        pthread_mutex_unlock(&state_lock);
        usleep(24000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 60;
    pthread_attr_t attributes;
    pthread_t loop, log;
    /* Mistake 8, highest-priority: 99 belongs to the kernel. */
    struct sched_param param = { .sched_priority = 99 };
    int error;

    /* Mistake 1, memory-unlocked: no mlockall. */
    if ((error = pthread_create(&log, NULL, logger, NULL)))
        fail("the logger", error);
    /* Mistake 2, stack-untouched: eight megabytes that come page by page.
     * Mistake 7, no-affinity: the loop may run on any CPU. */
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &param);
    if ((error = pthread_create(&loop, &attributes, control, NULL)))
        fail("the control loop (run it as root, or with an RTPRIO limit)", error);
    pthread_setname_np(loop, "control");
    pthread_setname_np(log, "logger");

    sleep(seconds);
    atomic_store(&ending, 1);
    pthread_join(loop, NULL);
    pthread_join(log, NULL);
    return 0;
}
