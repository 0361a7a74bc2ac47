//! Tests that changes of `tune` and `isolate` are reverted: on real kernels, judged by an
//! independent witness.
//!
//! Each scene has separate boots, so that the remains of one do not affect another; a scene's boots
//! share a disk, on which the journal is kept. `lab/machine_state` prints all readable settings and
//! threads of the machine; they are compared here, except for a short list of those that change by
//! themselves.

mod debian_guest;
mod document;
mod guest;
mod noise;
mod scene;
mod scenes;
mod state;

use std::time::Instant;

use super::frames::{self, Reply};
use super::machine::{Machine, NEW, NEW_RT, OLD_RT, RT, X86};
use super::{Args, Reason, qemu};
use crate::tally::{StepOutcome, Tally};
use crate::tools::Result;
use guest::Guest;
use scene::UndoScene;

/// The emulated HPET is slow, and the emulated serial port interrupts for nothing.
const WORDS: &str = "quiet tsc=reliable clocksource=tsc noirqdebug";
/// A network, and a device whose only purpose is to interrupt (`storm` of lab/onbeat_fault).
const DEVICES: &[&str] =
    &["-netdev", "user,id=net,restrict=on", "-device", "e1000e,netdev=net", "-device", "edu"];
const FOUR: Machine =
    Machine { smp: "4", memory: "2G", words: WORDS, devices: DEVICES, urgent: false, ..X86 };

/// The machines, the gate's first.
const MACHINES: &[Machine] = &[
    Machine { name: "6.12-rt-tune", first: true, metapackage: RT.metapackage, rt: true, ..FOUR },
    Machine { name: "6.12-tune", metapackage: "linux-image-6.12-amd64", ..FOUR },
    Machine { name: "6.1-rt-tune", metapackage: OLD_RT.metapackage, port: OLD_RT.port, rt: true, ..FOUR },
    Machine { name: "7.3-rt-tune", metapackage: NEW_RT.metapackage, suite: NEW_RT.suite, rt: true, ..FOUR },
    Machine { name: "7.3-tune", metapackage: NEW.metapackage, suite: NEW.suite, ..FOUR },
];

/// Boots the machines, scene by scene.
pub fn all_machines(options: &Args, tally: &mut Tally) {
    for machine in MACHINES.iter().filter(|machine| machine.first || options.all) {
        let wanted = |scene: &UndoScene| {
            (scene.first || options.all) && options.wants(&format!("{}: {}", machine.name, scene.name))
        };
        let scenes: Vec<UndoScene> = scenes::all().into_iter().filter(wanted).collect();
        if scenes.is_empty() {
            continue;
        }
        println!("\n{}: {} scenes", machine.name, scenes.len());
        let base = match super::base(machine, super::Build::Static) {
            Ok(base) => base,
            Err(why) => {
                leave_out(machine, &scenes, &why, tally);
                continue;
            }
        };
        for scene in &scenes {
            let start = Instant::now();
            let outcome = one_scene(machine, scene, &base);
            println!("  {} s", start.elapsed().as_secs());
            tally.note(format!("{}: {}", machine.name, scene.name), outcome);
        }
        if !options.keep {
            qemu::remove_image(machine);
            guest::remove_disk(machine);
        }
    }
}

fn leave_out(machine: &Machine, scenes: &[UndoScene], why: &Reason, tally: &mut Tally) {
    for scene in scenes {
        let outcome = match why {
            Reason::Missing(why) => StepOutcome::LeftOut(why.clone()),
            Reason::Broken(why) => StepOutcome::Failed(why.clone()),
        };
        tally.note(format!("{}: {}", machine.name, scene.name), outcome);
    }
}

fn one_scene(machine: &Machine, scene: &UndoScene, base: &super::Base) -> StepOutcome {
    let guest = match Guest::prepare(machine, scene, base) {
        Ok(guest) => guest,
        Err(Reason::Missing(why)) => return StepOutcome::LeftOut(why),
        Err(Reason::Broken(why)) => return StepOutcome::Failed(why),
    };
    let judged = replies(machine, scene, &guest).and_then(|replies| {
        let warned = scene::warnings(&replies, scene.may_warn)?;
        let mut measured = (scene.judge)(&replies, machine)?;
        if warned > 0 {
            measured.push(format!("the kernel warned {warned} times at {}", scene.may_warn));
        }
        Ok(measured)
    });
    match judged {
        Ok(measured) => {
            measured.iter().for_each(|line| println!("  {line}"));
            StepOutcome::Passed
        }
        Err(why) => StepOutcome::Failed(why),
    }
}

/// Report of each boot; one that stops before its end is an error, unless that was intended.
fn replies(machine: &Machine, scene: &UndoScene, guest: &Guest) -> Result<Vec<Reply>> {
    guest::fresh_disk(machine)?;
    let mut replies = Vec::new();
    for script in &scene.boots {
        let image = guest.image(machine, scene, script)?.with_words((scene.words)(&replies));
        let boot = qemu::boot_again(machine, &image)?;
        let report = frames::parse(&boot.results);
        let (words, log) = (&boot.last_words, boot.log.display());
        let reply = report.replies.into_iter().find(|(name, _)| *name == scene.name).map(|(_, reply)| reply);
        let reply = reply.ok_or_else(|| format!("the machine stopped: {words}; see {log}"))?;
        match reply.over {
            Some(0) => {}
            Some(code) => return Err(format!("boot {}: the script ended with {code}", replies.len() + 1)),
            None if scene::ends_by_itself(script) => {}
            None => return Err(format!("the machine stopped here: {words}; see {log}")),
        }
        replies.push(reply);
    }
    Ok(replies)
}
