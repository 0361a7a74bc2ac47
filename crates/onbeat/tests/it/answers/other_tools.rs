//! Every option of cyclictest and rtla has its row in the guide for their users, and its answer on
//! the command line.

use super::place::onbeat;

/// Program of another tool, its options as listed by its `--help`, and its replacement.
struct OtherTool {
    /// Program and version.
    name: &'static str,
    /// Headings of the guide with its rows.
    headings: &'static [&'static str],
    command: &'static [&'static str],
    /// Letter, if there is one, and name of each option.
    options: &'static [&'static str],
}

const CYCLICTEST: &str = "-a/--affinity -A/--aligned -b/--breaktrace -c/--clock --deepest-idle-state --default-system \
     -d/--distance -D/--duration -F/--fifo -h/--histogram -H/--histofall --histfile -i/--interval --json \
     --laptop --latency -l/--loops --mainaffinity -m/--mlockall -M/--refresh_on_max -N/--nsecs -o/--oscope \
     -p/--priority --policy --priospread -q/--quiet -r/--relative -R/--resolution --secaligned -s/--system \
     -S/--smp --spike --spike-nodes --smi -t/--threads --tracemark -u/--unbuffered -v/--verbose \
     --dbg_cyclictest -x/--posix_timers";

const RTLA: &str = "-p/--period -t/--trace -e/--event --filter --trigger -c/--cpus -H/--house-keeping -C/--cgroup \
     -P/--priority -q/--quiet --trace-buffer-size --warm-up -a/--auto --on-end --on-threshold -D/--debug \
     -d/--duration -b/--bucket-size -E/--entries --no-header --no-index --no-summary --with-zeros";

const TIMERLAT: &str = "-i/--irq -s/--stack -T/--thread -A/--aligned -k/--kernel-threads -U/--user-load -u/--user-threads \
     -n/--nano --deepest-idle-state --dma-latency --aa-only --bpf-action --dump-tasks --no-aa --stack-format \
     --no-irq --no-thread";

const OSNOISE: &str = "-r/--runtime -s/--stop -S/--stop-total -T/--threshold";

const TOOLS: &[OtherTool] = &[
    OtherTool {
        name: "cyclictest, rt-tests 2.10",
        headings: &["## cyclictest"],
        command: &["measure"],
        options: &[CYCLICTEST],
    },
    OtherTool {
        name: "rtla timerlat, 7.3",
        headings: &["### Of both", "### timerlat"],
        command: &["hunt"],
        options: &[RTLA, TIMERLAT],
    },
    OtherTool {
        name: "rtla osnoise, 7.3",
        headings: &["### Of both", "### osnoise"],
        command: &["probe", "spin"],
        options: &[RTLA, OSNOISE],
    },
];

impl OtherTool {
    fn options(&self) -> impl Iterator<Item = &str> {
        self.options.iter().flat_map(|options| options.split_whitespace())
    }
}

/// First cells of the rows below a heading, up to the next one.
fn first_cells<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let mut lines = page.lines().skip_while(|line| *line != heading);
    assert!(lines.next().is_some(), "the guide has no {heading}");
    let rows = lines.take_while(|line| !line.starts_with('#')).filter_map(|line| line.strip_prefix("| "));
    rows.filter_map(|row| row.split(" | ").next()).collect()
}

#[test]
fn every_option_has_its_row_in_the_guide() {
    let page = std::fs::read_to_string("../../docs/from-cyclictest.md").unwrap();
    for tool in TOOLS {
        let cells: Vec<&str> = tool.headings.iter().flat_map(|heading| first_cells(&page, heading)).collect();
        // Each option begins a piece of code, or follows another one in it.
        let named: Vec<&str> = cells
            .iter()
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .flat_map(|code| code.split([' ', '=', '[']))
            .collect();
        for option in tool.options() {
            let is_there = option.split('/').any(|name| named.contains(&name));
            assert!(is_there, "{}: {option} has no row", tool.name);
        }
    }
}

#[test]
fn every_option_is_taken_or_named() {
    for tool in TOOLS {
        for option in tool.options().flat_map(|option| option.split('/')) {
            // An accepted option leads to a duration that is refused.
            let output = onbeat(&[tool.command, &["-D", "0", option]].concat());
            let said = String::from_utf8(output.stderr).unwrap();
            let is_unknown = said.contains("unexpected argument") || said.contains("a similar argument");
            assert!(!is_unknown, "{}: {option}: {said}", tool.name);
        }
    }
}
