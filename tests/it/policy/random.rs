//! Random policies against a second, simpler description of the precedence.

use super::TestPolicy;
use crate::hostile_input::{Random, rounds};

/// The targets of rules, each with what it is about: the kind, and how many directories it begins with.
const TARGETS: [(&str, Kind, usize); 7] = [
    ("", Kind::Tool, 0),
    ("(a/)", Kind::Below("a"), 1),
    ("(a/b/)", Kind::Below("a/b"), 2),
    ("(a/b/c.dat)", Kind::Exact("a/b/c.dat"), 3),
    ("(z.txt)", Kind::Name("z.txt"), 0),
    ("(*.dat)", Kind::Extension(".dat"), 0),
    ("(./z.txt)", Kind::Exact("z.txt"), 1),
];

const PATHS: [&str; 6] = ["a/b/c.dat", "a/x", "a/b/x", "z.txt", "a/z.txt", "c.dat"];
const TOOLS: [&str; 3] = ["edit_file", "read_file", "*"];
const DECISIONS: [&str; 3] = ["allow", "ask", "deny"];

#[derive(Clone, Copy)]
enum Kind {
    Tool,
    Below(&'static str),
    Exact(&'static str),
    Name(&'static str),
    Extension(&'static str),
}

impl Kind {
    fn covers(self, path: &str) -> bool {
        match self {
            Self::Tool => true,
            Self::Below(dir) => path.starts_with(&format!("{dir}/")),
            Self::Exact(exact) => path == exact,
            Self::Name(name) => path.rsplit('/').next() == Some(name),
            Self::Extension(extension) => path.ends_with(extension),
        }
    }
}

/// The place of a rule: the user's file or the project's, its section, and whether it is for runs without a terminal.
#[derive(Clone, Copy, PartialEq)]
struct Place {
    project: bool,
    section: bool,
    headless: bool,
}

#[derive(Clone, Copy)]
struct Rule {
    place: Place,
    tool: usize,
    target: usize,
    decision: usize,
}

impl Rule {
    fn random(random: &mut Random) -> Self {
        let project = random.below(3) == 0;
        let place =
            Place { project, section: !project && random.below(2) == 0, headless: random.below(4) == 0 };
        let first = usize::from(project);
        let decision = first + random.below(3 - first);
        Self { place, tool: random.below(3), target: random.below(TARGETS.len()), decision }
    }

    fn text(&self) -> String {
        format!("{}{}", TOOLS[self.tool], TARGETS[self.target].0)
    }

    fn is_about(&self, tool: &str, path: &str) -> bool {
        (TOOLS[self.tool] == tool || TOOLS[self.tool] == "*") && TARGETS[self.target].1.covers(path)
    }
}

/// Writes the rules of one file.
fn file(rules: &[Rule], project: bool) -> String {
    let mut text = String::new();
    for (heading, section, headless) in [
        ("", false, false),
        ("[headless]", false, true),
        ("[dir.\"$WORK\"]", true, false),
        ("[dir.\"$WORK\".headless]", true, true),
    ] {
        let place = Place { project, section, headless };
        let here: Vec<&Rule> = rules.iter().filter(|rule| rule.place == place).collect();
        if here.is_empty() {
            continue;
        }
        text.push_str(&format!("{heading}\n"));
        for (number, decision) in DECISIONS.iter().enumerate() {
            let list: Vec<String> = here
                .iter()
                .filter(|rule| rule.decision == number)
                .map(|rule| format!("\"{}\"", rule.text()))
                .collect();
            if !list.is_empty() {
                text.push_str(&format!("{decision} = [{}]\n", list.join(", ")));
            }
        }
    }
    text
}

/// Decides as `docs/policy.md` says it, in its own words.
fn expected(rules: &[Rule], tool: &str, path: &str, headless: bool) -> &'static str {
    let about: Vec<&Rule> = rules.iter().filter(|rule| rule.is_about(tool, path)).collect();
    let of_file = |project: bool| {
        let winner = |for_headless: bool| {
            let here = |rule: &&&Rule| rule.place.project == project && rule.place.headless == for_headless;
            most_specific(&about.iter().filter(here).copied().copied().collect::<Vec<Rule>>())
        };
        match (winner(false), headless.then(|| winner(true)).flatten()) {
            (Some(2), _) => Some(2),
            (general, special) => special.or(general),
        }
    };
    // Between files, the stricter one counts.
    [of_file(false), of_file(true)].into_iter().flatten().max().map_or("-", |decision| DECISIONS[decision])
}

/// Returns the decision of the most specific rule: an exact path, then a pattern, then the tool alone. Of two paths, the
/// longer one; of two that are alike, the one in the section of the directory, then the one that names the tool, then the
/// stricter one. Names and paths are alike, so the stricter of the two counts.
fn most_specific(rules: &[Rule]) -> Option<usize> {
    let best = |choose: &dyn Fn(&Rule) -> bool| {
        let chosen = rules.iter().filter(|rule| choose(rule));
        chosen
            .max_by_key(|rule| (TARGETS[rule.target].2, rule.place.section, rule.tool < 2, rule.decision))
            .map(|rule| rule.decision)
    };
    let exact = best(&|rule| matches!(TARGETS[rule.target].1, Kind::Exact(_)));
    let path = best(&|rule| matches!(TARGETS[rule.target].1, Kind::Below(_)));
    let name = best(&|rule| matches!(TARGETS[rule.target].1, Kind::Name(_) | Kind::Extension(_)));
    let tool = best(&|rule| matches!(TARGETS[rule.target].1, Kind::Tool));
    exact.or(path.max(name)).or(tool)
}

#[test]
fn random_policies_decide_as_the_documentation_says() {
    let mut random = Random::new(7);
    let mut decisions = std::collections::BTreeMap::new();
    let mut policy = TestPolicy::new("");
    for round in 0..rounds(2_000, 20_000) {
        let rules: Vec<Rule> = (0..1 + random.below(7)).map(|_| Rule::random(&mut random)).collect();
        policy.write_user(&file(&rules, false));
        policy.write_project(&file(&rules, true));
        policy.caller.headless = random.below(2) == 0;
        let tool = TOOLS[random.below(2)];
        let decided = policy.decide_all(&PATHS.map(|path| format!("{tool}({path})")));
        for (path, decided) in PATHS.into_iter().zip(decided) {
            let expected = expected(&rules, tool, path, policy.caller.headless);
            *decisions.entry(expected).or_insert(0) += 1;
            let files = [file(&rules, false), file(&rules, true)];
            let headless = policy.caller.headless;
            assert_eq!(
                decided,
                expected,
                "round {round}: {tool}({path}), headless: {headless}\n{}",
                files.join("\n---\n")
            );
        }
    }
    assert!(decisions.len() == 4 && decisions.values().all(|count| *count > 500), "{decisions:?}");
}
