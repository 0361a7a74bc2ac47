// What `probe switch` is compared with: two SCHED_FIFO threads on a CPU hand over by a futex.
// switch CPU LOOPS: half the round trip, in ns: least, mean, largest.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_uint turn;
static int cpu, loops;

static void set(unsigned value) {
    atomic_store_explicit(&turn, value, memory_order_release);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
static void wait_while(unsigned value) {
    while (atomic_load_explicit(&turn, memory_order_acquire) == value)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}
static void place(void) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    struct sched_param priority = {.sched_priority = 80};
    if (sched_setaffinity(0, sizeof only, &only) || sched_setscheduler(0, SCHED_FIFO, &priority))
        exit(4);
}
static void *partner(void *none) {
    place();
    for (int i = 0; i < loops; i++) { wait_while(0); set(0); }
    return none;
}
static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}
int main(int count, char **words) {
    if (count != 3) return 2;
    cpu = atoi(words[1]), loops = atoi(words[2]);
    pthread_t thread;
    place();
    pthread_create(&thread, NULL, partner, NULL);
    long long least = 1LL << 60, sum = 0, most = 0;
    for (int i = 0; i < loops; i++) {
        long long begin = now();
        set(1), wait_while(1);
        long long half = (now() - begin) / 2;
        sum += half;
        if (half < least) least = half;
        if (half > most) most = half;
        if (i % 32 == 31) nanosleep(&(struct timespec){.tv_nsec = 1600000}, NULL);
    }
    printf("%lld %lld %lld\n", least, sum / loops, most);
}
