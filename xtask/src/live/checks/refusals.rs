//! Refusals: the right exit code, one line that says why, and nothing left behind.

use super::super::frames::Reply;
use super::super::judge::{Verdict, all_sums, document, exit, integrity, require, text_is};
use super::super::machine::Machine;
use super::Check;

/// Name, what is asked of onbeat, whether an ordinary user asks, exit code.
const REFUSALS: [(&str, &str, bool, i64); 6] = [
    ("refuse-cpu", "-a 99 -o b", false, 2),
    ("refuse-interval", "-i 0 -o b", false, 2),
    ("refuse-priority", "-p 200 -o b", false, 2),
    ("refuse-duration", "-D 3x -o b", false, 2),
    ("refuse-folder", "-o /root/b", true, 4),
    ("refuse-privilege", "-p 80 -o b", true, 4),
];

pub fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = REFUSALS
        .iter()
        .map(|&(name, asked, user, code)| {
            let line = format!("onbeat measure -D 1s -q {asked}");
            let line = if user { format!("su user -c 'cd /run/{name} && {line}'") } else { line };
            let script = format!(
                "chown user .\nrun m {line}\nvalue left $(ls -A . /root/b /home/user/b 2>/dev/null | grep -c '^[^/]')\n"
            );
            Check::new(name, &script, move |reply, _| refused(reply, code))
        })
        .collect();
    checks.push(Check::new(
        "unprivileged",
        "chown user .\n\
         run m su user -c 'cd /run/unprivileged && onbeat measure -D 2s -i 1000 -a 0-1 -q -o b --json m.json'\n\
         send run m.json\n",
        unprivileged,
    ));
    checks
}

fn refused(reply: &Reply, code: i64) -> Verdict {
    exit(reply, "m", code)?;
    let said = reply.file("m.err")?;
    require(said.lines().count() == 1, || format!("not one line on standard error: {said:?}"))?;
    let out = reply.file("m.out")?;
    require(out.is_empty(), || format!("a refusal on standard output: {out:?}"))?;
    let left = reply.number("left")?;
    require(left == 0, || format!("{left} files left behind"))
}

fn unprivileged(reply: &Reply, _: &Machine) -> Verdict {
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
        reply.values.insert("left".into(), left.into());
        reply.files.insert("m.err".into(), Some(said.into()));
        reply.files.insert("m.out".into(), Some(out.into()));
        reply
    }

    #[test]
    fn a_refusal_is_one_line_a_code_and_nothing_else() {
        assert_eq!(refused(&reply("2", "no CPU 99\n", "", "0"), 2), Ok(()));
        assert!(refused(&reply("1", "no CPU 99\n", "", "0"), 2).is_err());
        assert!(refused(&reply("2", "", "", "0"), 2).is_err());
        assert!(refused(&reply("2", "no CPU 99\nbacktrace\n", "", "0"), 2).is_err());
        assert!(refused(&reply("2", "no CPU 99\n", "usage\n", "0"), 2).is_err());
        assert!(refused(&reply("2", "no CPU 99\n", "", "1"), 2).is_err());
    }

    #[test]
    fn a_run_without_privilege_says_so() {
        use super::super::super::judge::tests::cpu;
        use super::super::super::machine::MACHINES;
        use serde_json::json;
        let judged = |kind: &str, policy: &str| {
            let run = json!({ "cpus": [cpu(0), cpu(1)], "plan": { "policy": policy }, "integrity": [{ "kind": kind }] });
            let mut reply = reply("0", "", "", "0");
            reply.files.insert("run".into(), Some(run.to_string()));
            unprivileged(&reply, &MACHINES[0])
        };
        assert_eq!(judged("privilege", "other"), Ok(()));
        assert!(judged("steal", "other").is_err() && judged("privilege", "fifo").is_err());
    }
}
