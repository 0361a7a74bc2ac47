// SPDX-License-Identifier: (MIT OR GPL-2.0)
/*
 * /sys/kernel/debug/onbeat_fault/inject takes
 *   KIND cpu=1 from=0 us=20000 count=30 period_ms=400 jitter_ms=137 prio=90
 * and .../log tells what was done; .../state is "running" or "idle".
 */
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <uapi/linux/sched/types.h>

#include "onbeat_fault.h"

#define FAULT_MOST_US 2000000

static DEFINE_MUTEX(fault_mutex);
static struct dentry *folder;
static struct task_struct *runner;
static struct fault_request request;
static bool running;

void fault_set_fifo(struct task_struct *task, unsigned int prio)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = prio,
	};

	sched_setattr_nocheck(task, &attr);
}

/* Steps of the golden ratio: spread out, and the same in every run. */
static unsigned int pause_ms(const struct fault_request *rq, unsigned int i)
{
	return rq->period_ms + (i * 2654435769u >> 16) % (rq->jitter_ms + 1);
}

static void pause(unsigned int ms)
{
	if (!kthread_should_stop())
		schedule_timeout_interruptible(msecs_to_jiffies(ms));
}

static int runner_run(void *data)
{
	const struct fault_request *rq = data;
	int ret = rq->kind->setup ? rq->kind->setup(rq) : 0;
	unsigned int i;

	for (i = 0; !ret && i < rq->count && !kthread_should_stop(); i++) {
		pause(pause_ms(rq, i));
		if (kthread_should_stop())
			break;
		fault_log_next();
		rq->kind->inject(rq);
	}
	if (!ret && rq->kind->teardown)
		rq->kind->teardown();
	if (ret)
		pr_err("onbeat_fault: %s cannot be set up: %d\n", rq->kind->word, ret);
	WRITE_ONCE(running, false);
	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static void stop_runner(void)
{
	if (runner)
		kthread_stop(runner);
	runner = NULL;
}

static int start_runner(void)
{
	struct task_struct *task = kthread_create(runner_run, &request, "%s",
						  request.kind->thread);

	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, request.kind->remote ? request.from : request.cpu);
	if (request.prio)
		fault_set_fifo(task, request.prio);
	WRITE_ONCE(running, true);
	runner = task;
	wake_up_process(task);
	return 0;
}

static const struct fault_kind *find_in(const struct fault_kind *kinds, const char *word)
{
	for (; kinds->word; kinds++)
		if (!strcmp(kinds->word, word))
			return kinds;
	return NULL;
}

static const struct fault_kind *find_kind(const char *word)
{
	static const struct fault_kind *const lists[] = {
		fault_atomic_kinds, fault_device_kinds, fault_interrupt_kinds, fault_thread_kinds,
		fault_work_kinds,
	};
	const struct fault_kind *found = NULL;
	unsigned int i;

	for (i = 0; !found && i < ARRAY_SIZE(lists); i++)
		found = find_in(lists[i], word);
	return found;
}

static int parse_field(struct fault_request *rq, char *field)
{
	const struct { const char *key; unsigned int *value; } fields[] = {
		{ "cpu", &rq->cpu }, { "from", &rq->from }, { "us", &rq->us },
		{ "count", &rq->count }, { "period_ms", &rq->period_ms },
		{ "jitter_ms", &rq->jitter_ms }, { "prio", &rq->prio },
	};
	char *key = strsep(&field, "=");
	unsigned int i;

	for (i = 0; field && i < ARRAY_SIZE(fields); i++)
		if (!strcmp(fields[i].key, key))
			return kstrtouint(field, 10, fields[i].value);
	return -EINVAL;
}

static int parse_request(struct fault_request *rq, char *text)
{
	char *words = strim(text);
	char *word = strsep(&words, " ");
	int ret = 0;

	*rq = (struct fault_request){ .cpu = 1, .us = 20000, .count = 1, .period_ms = 400 };
	rq->kind = find_kind(word);
	if (!rq->kind)
		return -EINVAL;
	rq->prio = rq->kind->prio;
	while (!ret && (word = strsep(&words, " ")))
		ret = parse_field(rq, word);
	if (ret)
		return ret;
	if (rq->cpu >= nr_cpu_ids || rq->from >= nr_cpu_ids || !cpu_online(rq->cpu) ||
	    !cpu_online(rq->from) || rq->us > FAULT_MOST_US || rq->prio > 99)
		return -EINVAL;
	return rq->kind->remote && rq->cpu == rq->from ? -EINVAL : 0;
}

static ssize_t inject_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	struct fault_request asked;
	char *text;
	int ret;

	if (size > 256)
		return -EINVAL;
	text = memdup_user_nul(from, size);
	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = parse_request(&asked, text);
	kfree(text);
	if (ret)
		return ret;
	mutex_lock(&fault_mutex);
	if (READ_ONCE(running)) {
		ret = -EBUSY;
	} else {
		stop_runner();
		request = asked;
		ret = start_runner();
	}
	mutex_unlock(&fault_mutex);
	return ret ? ret : size;
}

static const struct file_operations inject_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = inject_write,
};

static int state_show(struct seq_file *m, void *unused)
{
	seq_puts(m, READ_ONCE(running) ? "running\n" : "idle\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);
DEFINE_SHOW_ATTRIBUTE(fault_log);

static int __init fault_init(void)
{
	int ret = fault_log_init();

	if (ret)
		return ret;
	folder = debugfs_create_dir("onbeat_fault", NULL);
	debugfs_create_file("inject", 0200, folder, NULL, &inject_fops);
	debugfs_create_file("state", 0400, folder, NULL, &state_fops);
	debugfs_create_file("log", 0400, folder, NULL, &fault_log_fops);
	return 0;
}

static void __exit fault_exit(void)
{
	debugfs_remove(folder);
	stop_runner();
	fault_log_exit();
}

module_init(fault_init);
module_exit(fault_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Latency faults of known kind, place, time and length");
