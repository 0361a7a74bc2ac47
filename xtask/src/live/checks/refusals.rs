//! Refusals: the right exit code, one line with the reason, and no remains.

use super::super::frames::Reply;
use super::super::judge::{CheckResult, all_sums, document, exit, integrity, require, text_is};
use super::super::machine::Machine;
use super::Check;

/// A command line, and its expected refusal.
struct Refusal {
    name: &'static str,
    flags: &'static str,
    /// True for an ordinary user.
    user: bool,
    code: i64,
    /// Text that the line must contain: a refusal for another reason does not count.
    names: &'static str,
}

const REFUSALS: [Refusal; 6] = [
    Refusal { name: "refuse-cpu", flags: "-D 1s -a 99", user: false, code: 2, names: "99" },
    Refusal { name: "refuse-interval", flags: "-D 1s -i 0", user: false, code: 2, names: "interval" },
    Refusal { name: "refuse-priority", flags: "-D 1s -p 200", user: false, code: 2, names: "200" },
    Refusal { name: "refuse-duration", flags: "-D 3x", user: false, code: 2, names: "3x" },
    Refusal { name: "refuse-folder", flags: "-D 1s", user: true, code: 4, names: "/root/b" },
    Refusal { name: "refuse-privilege", flags: "-D 1s -p 80", user: true, code: 4, names: "not permitted" },
];

pub fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = REFUSALS.iter().map(check).collect();
    checks.push(Check::new(
        "unprivileged",
        "chown user .\n\
         run m su user -c 'cd /run/unprivileged && onbeat measure -D 2s -i 1000 -a 0-1 -q -o b --json m.json'\n\
         send run m.json\n",
        unprivileged,
    ));
    checks.push(Check::new("doctor", &doctor_script(), doctor));
    checks
}

/// Lines of commands whose exit codes `onbeat doctor` states, `@` for a new folder; true for those that change the
/// machine if they are permitted, so that only an ordinary user tries them.
const EXAMINED: [(&str, &str, bool); 4] = [
    ("hunt", "hunt -q -D 500ms -a 1 -o @", false),
    ("watch", "watch -q -D 1s --interval 1s -o @", false),
    ("tune apply", "tune apply -q --cpus 1 --yes", true),
    ("isolate create", "isolate create 1", true),
];

fn doctor_script() -> String {
    let mut script = String::from("chown user .\n");
    for user in [false, true] {
        let mut run = |label: &str, line: &str| {
            let label = label_of(label, user);
            let line = line.replace('@', &format!("of-{label}"));
            script += &if user {
                format!("run {label} su user -c 'cd /run/doctor && onbeat {line}'\n")
            } else {
                format!("run {label} onbeat {line}\n")
            };
        };
        run("doctor", "doctor --json -");
        for (name, line, _) in EXAMINED.iter().filter(|(.., changes)| user || !changes) {
            run(name, line);
        }
    }
    script
}

fn label_of(command: &str, user: bool) -> String {
    format!("{}-{}", command.replace(' ', "-"), if user { "user" } else { "root" })
}

/// The states of commands are the exit codes that they then have.
fn doctor(reply: &Reply, _: &Machine) -> CheckResult {
    for user in [false, true] {
        let label = label_of("doctor", user);
        exit(reply, &label, 0)?;
        let text = reply.file(&format!("{label}.out"))?;
        let document: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for (name, _, _) in EXAMINED.iter().filter(|(.., changes)| user || !changes) {
            let all = document["commands"].as_array().into_iter().flatten();
            let found = all.into_iter().find(|found| found["command"] == *name);
            let state = found.and_then(|found| found["state"].as_str()).unwrap_or_default();
            let code = match state {
                "works" | "partly" => 0,
                "not-permitted" => 4,
                "not-supported" => 5,
                _ => return Err(format!("doctor has no state of {name}: {state:?}")),
            };
            exit(reply, &label_of(name, user), code).map_err(|why| format!("doctor says {state}: {why}"))?;
        }
        let is_refused = document["commands"][1]["state"] == "not-permitted";
        require(is_refused == user, || format!("hunt is {}", document["commands"][1]["state"]))?;
    }
    Ok(())
}

fn check(refusal: &'static Refusal) -> Check {
    let Refusal { name, flags, user, .. } = refusal;
    let folder = if refusal.names.starts_with('/') { refusal.names } else { "b" };
    let line = format!("onbeat measure -q {flags} -o {folder}");
    let line = if *user { format!("su user -c 'cd /run/{name} && {line}'") } else { line };
    let left = "{ find . -mindepth 1; ls -d /root/b /home/user/b; } 2>/dev/null";
    let script = format!("chown user .\nrun m {line}\n{left} >/run/left\nsend left /run/left\n");
    Check::new(name, &script, move |reply, _| refused(reply, refusal.code, refusal.names))
}

fn refused(reply: &Reply, code: i64, names: &str) -> CheckResult {
    exit(reply, "m", code)?;
    let said = reply.file("m.err")?;
    require(said.lines().count() == 1, || format!("not one line on standard error: {said:?}"))?;
    require(said.contains(names), || format!("the refusal does not name {names}: {}", said.trim()))?;
    let out = reply.file("m.out")?;
    require(out.is_empty(), || format!("a refusal on standard output: {out:?}"))?;
    let left: Vec<&str> = reply.file("left")?.lines().collect();
    require(left.is_empty(), || {
        format!("{} files left behind, among them {}", left.len(), left[left.len() - 1])
    })
}

fn unprivileged(reply: &Reply, _: &Machine) -> CheckResult {
    exit(reply, "m", 0)?;
    let run = document(reply, "run")?;
    all_sums(&run, &[0, 1])?;
    text_is(&run, "/plan/policy", "other")?;
    integrity(&run, &["privilege"]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::MACHINES;
    use super::*;

    fn reply(code: &str, said: &str, out: &str, left: &str) -> Reply {
        let mut reply = Reply::default();
        reply.values.insert("m.exit".into(), code.into());
        reply.files.insert("left".into(), Some(left.into()));
        reply.files.insert("m.err".into(), Some(said.into()));
        reply.files.insert("m.out".into(), Some(out.into()));
        reply
    }

    #[test]
    fn a_refusal_is_one_line_a_code_and_nothing_else() {
        assert_eq!(refused(&reply("2", "no CPU 99\n", "", ""), 2, "99"), Ok(()));
        assert!(refused(&reply("1", "no CPU 99\n", "", ""), 2, "99").is_err());
        assert!(refused(&reply("2", "out of paper\n", "", ""), 2, "99").is_err());
        assert!(refused(&reply("2", "", "", ""), 2, "99").is_err());
        assert!(refused(&reply("2", "no CPU 99\nbacktrace\n", "", ""), 2, "99").is_err());
        assert!(refused(&reply("2", "no CPU 99\n", "usage\n", ""), 2, "99").is_err());
        assert!(refused(&reply("2", "no CPU 99\n", "", "b/run.json\n"), 2, "99").is_err());
    }

    #[test]
    fn a_run_without_privilege_says_so() {
        use super::super::super::judge::tests::cpu;
        use serde_json::json;
        let judged = |kind: &str, policy: &str| {
            let run = json!({ "cpus": [cpu(0), cpu(1)], "plan": { "policy": policy }, "integrity": [{ "kind": kind }] });
            let mut reply = reply("0", "", "", "");
            reply.files.insert("run".into(), Some(run.to_string()));
            unprivileged(&reply, &MACHINES[0])
        };
        assert_eq!(judged("privilege", "other"), Ok(()));
        assert!(judged("steal", "other").is_err() && judged("privilege", "fifo").is_err());
    }

    #[test]
    fn a_state_that_the_command_does_not_have_fails() {
        let commands = |refused: &str| -> String {
            let all = ["measure"].into_iter().chain(EXAMINED.iter().map(|(name, ..)| *name));
            let all: Vec<_> =
                all.map(|name| serde_json::json!({ "command": name, "state": refused })).collect();
            serde_json::json!({ "commands": all }).to_string()
        };
        let mut good = Reply::default();
        for (user, refused, code) in [(false, "partly", "0"), (true, "not-permitted", "4")] {
            let label = label_of("doctor", user);
            good.values.insert(format!("{label}.exit"), "0".into());
            good.files.insert(format!("{label}.out"), Some(commands(refused)));
            for (name, ..) in EXAMINED {
                good.values.insert(format!("{}.exit", label_of(name, user)), code.into());
            }
        }
        assert_eq!(doctor(&good, &MACHINES[0]), Ok(()));
        for (label, code) in [("hunt-root", "4"), ("hunt-user", "0"), ("tune-apply-user", "5")] {
            let mut bad =
                Reply { values: good.values.clone(), files: good.files.clone(), ..Reply::default() };
            bad.values.insert(format!("{label}.exit"), code.into());
            assert!(doctor(&bad, &MACHINES[0]).is_err(), "{label} {code}");
        }
    }
}
