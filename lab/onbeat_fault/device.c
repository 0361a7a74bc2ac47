// SPDX-License-Identifier: (MIT OR GPL-2.0)
/*
 * A storm of interrupts of a real device, which goes wherever the interrupt's affinity says. QEMU's educational device
 * (docs/specs/edu.rst there) sends one whenever it is written to.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/pci.h>

#include "onbeat_fault.h"

#define EDU_VENDOR 0x1234
#define EDU_DEVICE 0x11e8
#define EDU_RAISE 0x60
#define EDU_ACKNOWLEDGE 0x64

/* So long is one interrupt of a storm. */
#define STORM_PIECE_US 500

static const struct fault_request *current_rq;
static struct pci_dev *edu;
static void __iomem *registers;
static u64 storm_start;
static DECLARE_COMPLETION(over);

/* The next one is sent before this one is over: it comes as soon as it may, and lets nothing through in between. */
static noinline irqreturn_t fault_storm(int irq, void *unused)
{
	writel(1, registers + EDU_ACKNOWLEDGE);
	fault_spin(STORM_PIECE_US);
	if (fault_now() - storm_start < current_rq->us * 1000ull) {
		writel(1, registers + EDU_RAISE);
	} else {
		fault_log_add(current_rq, "irq", "onbeat_storm", -1, storm_start);
		complete(&over);
	}
	return IRQ_HANDLED;
}

static void release_device(void)
{
	if (registers)
		pci_iounmap(edu, registers);
	registers = NULL;
	pci_free_irq_vectors(edu);
	pci_disable_device(edu);
	pci_dev_put(edu);
}

/* A message, not a line that others share; and no thread for its handler, on PREEMPT_RT either. */
static int claim_device(void)
{
	int ret;

	pci_set_master(edu);
	registers = pci_iomap(edu, 0, 0);
	if (!registers)
		return -ENOMEM;
	ret = pci_alloc_irq_vectors(edu, 1, 1, PCI_IRQ_MSI);
	if (ret < 0)
		return ret;
	return request_irq(pci_irq_vector(edu, 0), fault_storm, IRQF_NO_THREAD, "onbeat_storm", edu);
}

static int setup_storm(const struct fault_request *rq)
{
	int ret;

	current_rq = rq;
	edu = pci_get_device(EDU_VENDOR, EDU_DEVICE, NULL);
	if (!edu)
		return -ENODEV;
	ret = pci_enable_device(edu);
	if (ret) {
		pci_dev_put(edu);
		return ret;
	}
	ret = claim_device();
	if (ret)
		release_device();
	else
		irq_set_affinity(pci_irq_vector(edu, 0), cpumask_of(rq->cpu));
	return ret;
}

/* An interrupt on its way while its affinity changes may get lost: the next storm comes all the same. */
static void inject_storm(const struct fault_request *rq)
{
	reinit_completion(&over);
	storm_start = fault_now();
	writel(1, registers + EDU_RAISE);
	wait_for_completion_timeout(&over, HZ);
}

static void teardown_storm(void)
{
	free_irq(pci_irq_vector(edu, 0), edu);
	release_device();
}

const struct fault_kind fault_device_kinds[] = {
	{ .word = "storm", .thread = "fault_sender", .remote = true, .setup = setup_storm,
	  .inject = inject_storm, .teardown = teardown_storm },
	{ }
};
