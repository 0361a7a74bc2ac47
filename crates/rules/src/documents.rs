//! Tests of docs/settings.md, which covers other guides and tools, and of the reasons in
//! docs/auditing.md: every rule in them exists.

#[cfg(test)]
mod tests {
    use crate::Rule;
    use std::collections::BTreeSet;

    const SETTINGS: &str = include_str!("../../../docs/settings.md");
    const AUDITING: &str = include_str!("../../../docs/auditing.md");

    /// Rows of the tables below a heading, or of all tables, without their heads, as cells.
    fn rows(text: &str, heading: Option<&str>) -> Vec<Vec<String>> {
        let lines = text.lines().skip_while(|line| heading.is_some_and(|heading| *line != heading)).skip(1);
        let section = lines.take_while(|line| heading.is_none() || !line.starts_with("## "));
        let cells = |line: &str| -> Option<Vec<String>> {
            let inner = line.strip_prefix('|')?.strip_suffix('|')?;
            Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
        };
        let rows: Vec<Vec<String>> = section.filter_map(cells).collect();
        let head = |at: usize| rows.get(at + 1).is_some_and(|next| next[0].starts_with("---"));
        let body = |&(at, row): &(usize, &Vec<String>)| !row[0].starts_with("---") && !head(at);
        rows.iter().enumerate().filter(body).map(|(_, row)| row.clone()).collect()
    }

    /// IDs of rules that a text links to, and errors in the links.
    fn linked(text: &str) -> (Vec<&str>, Vec<String>) {
        let (mut ids, mut wrong) = (Vec::new(), Vec::new());
        for (at, _) in text.match_indices("](rules/") {
            let id = text[..at].rsplit('[').next().unwrap_or_default();
            if !text[at..].starts_with(&format!("](rules/{id}.md)")) || Rule::find(id).is_none() {
                wrong.push(format!("{id} is no rule, or its link leads elsewhere"));
            }
            ids.push(id);
        }
        (ids, wrong)
    }

    /// Settings that no rule judges, by their name in docs/auditing.md.
    fn without() -> Vec<Vec<String>> {
        rows(AUDITING, Some("## Looked at, and no rule"))
    }

    #[test]
    fn each_setting_has_a_rule_or_a_reason() {
        let known: BTreeSet<String> = without().into_iter().map(|row| row[0].clone()).collect();
        let (mut used, mut wrong) = (BTreeSet::new(), Vec::new());
        let rows = rows(SETTINGS, None);
        assert!(rows.len() > 120, "{} settings", rows.len());
        for row in &rows {
            let [setting, here] = row.as_slice() else { panic!("{row:?}") };
            let (ids, bad) = linked(here);
            wrong.extend(bad.into_iter().map(|bad| format!("{setting}: {bad}")));
            match here.strip_prefix("no rule: ") {
                Some(reason) if reason.starts_with("see ") => {
                    used.insert(reason["see ".len()..].to_owned());
                }
                Some(reason) if reason.len() > 15 => {}
                Some(_) => wrong.push(format!("{setting}: no reason")),
                None if ids.is_empty() => wrong.push(format!("{setting}: neither a rule nor a reason")),
                None => {}
            }
        }
        let lost = used.difference(&known);
        wrong.extend(lost.map(|name| format!("{name} is not in docs/auditing.md")));
        let idle = known.difference(&used);
        wrong.extend(idle.map(|name| format!("{name} is in no guide's table of docs/settings.md")));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn each_reason_has_a_source() {
        let rows = without();
        assert!(rows.len() >= 10, "{rows:?}");
        for row in rows {
            let [setting, why, source] = row.as_slice() else { panic!("{row:?}") };
            assert!(why.len() > 40 && why.ends_with('.'), "{setting}: {why}");
            assert!(source.contains("](https://"), "{setting}: {source}");
            assert_eq!(linked(why).1, Vec::<String>::new(), "{setting}");
        }
    }

    #[test]
    fn a_rule_that_is_gone_would_be_noticed() {
        assert_eq!(linked("[swap](rules/swap.md), [no-rule](rules/no-rule.md)").1.len(), 1);
        assert_eq!(linked("[swap](rules/swappiness.md)").1.len(), 1);
        assert_eq!(linked("[swap](rules/swap.md): as it is").0, ["swap"]);
        assert_eq!(rows("x\n| a | b |\n|---|---|\n| c | d |\n", None), [["c", "d"]]);
    }
}
