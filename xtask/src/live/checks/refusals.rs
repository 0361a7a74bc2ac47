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
    checks
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
        use super::super::super::machine::MACHINES;
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
}
