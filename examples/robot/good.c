/* A control loop that is written well for real time: `onbeat check` finds nothing above low.
 *
 *     cc -O2 -pthread good.c -o robot-good && sudo ./robot-good [SECONDS]
 *
 * README.md explains each step. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 1000000L
#define STACK_BYTES (256 * 1024)
#define MESSAGES 1024 /* A power of two. */

/* A ring with one writer and one reader, neither of which ever waits for the other. */
struct message {
    uint64_t cycle;
    double position;
};
static struct message ring[MESSAGES];
static _Atomic unsigned written, taken;
static _Atomic unsigned lost;
static _Atomic int ending;

/* What the loop and the logger change together, under a lock that lends its holder the priority of
 * who waits for it. */
static pthread_mutex_t state_lock;
static double target = 1.0;

static void fail(const char *what, int error)
{
    fprintf(stderr, "robot: %s: %s\n", what, strerror(error));
    exit(1);
}

/* Never waits: a message for which there is no room is counted. */
static void tell(uint64_t cycle, double position)
{
    unsigned next = atomic_load_explicit(&written, memory_order_relaxed);
    if (next - atomic_load_explicit(&taken, memory_order_acquire) == MESSAGES) {
        atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
        return;
    }
    ring[next % MESSAGES] = (struct message){ cycle, position };
    atomic_store_explicit(&written, next + 1, memory_order_release);
}

static void *control(void *unused)
{
    (void)unused;
    struct timespec release;
    double position = 0;
    clock_gettime(CLOCK_MONOTONIC, &release);
    for (uint64_t cycle = 0; !atomic_load_explicit(&ending, memory_order_relaxed); cycle++) {
        /* The next release follows from the last one, whatever the cycle took. */
        release.tv_nsec += PERIOD_NS;
        if (release.tv_nsec >= 1000000000L) {
            release.tv_nsec -= 1000000000L;
            release.tv_sec++;
        }
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &release, NULL) == EINTR)
            ;
        pthread_mutex_lock(&state_lock);
        double wanted = target;
        pthread_mutex_unlock(&state_lock);
        position += 0.1 * (wanted - position);
        if (cycle % 100 == 0)
            tell(cycle, position);
    }
    return NULL;
}

/* The thread without a real-time policy writes for the one that has it. */
static void *logger(void *unused)
{
    (void)unused;
    while (!atomic_load(&ending)) {
        unsigned next = atomic_load_explicit(&taken, memory_order_relaxed);
        while (next != atomic_load_explicit(&written, memory_order_acquire)) {
            struct message message = ring[next % MESSAGES];
            atomic_store_explicit(&taken, ++next, memory_order_release);
            printf("cycle %llu at %.3f\n", (unsigned long long)message.cycle, message.position);
        }
        pthread_mutex_lock(&state_lock);
        target = -target;
        pthread_mutex_unlock(&state_lock);
        usleep(100000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 60;
    pthread_mutexattr_t lock;
    pthread_attr_t attributes;
    pthread_t loop, log;
    struct sched_param param = { .sched_priority = 80 };
    cpu_set_t allowed, own;
    int error;

    /* Before any thread: all memory there is, and all that comes, stacks included. */
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        fail("mlockall", errno);

    pthread_mutexattr_init(&lock);
    if ((error = pthread_mutexattr_setprotocol(&lock, PTHREAD_PRIO_INHERIT)))
        fail("priority inheritance", error);
    pthread_mutex_init(&state_lock, &lock);

    /* The last CPU that this program may use. */
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        fail("sched_getaffinity", errno);
    CPU_ZERO(&own);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_SET(cpu, &own);
            break;
        }
    }

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if ((error = pthread_create(&log, &attributes, logger, NULL)))
        fail("the logger", error);
    pthread_attr_setaffinity_np(&attributes, sizeof own, &own);
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
