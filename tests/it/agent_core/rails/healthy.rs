//! Two hundred healthy runs, in which no rail may say or do anything.

use kontekst::agent::{
    History, StartRun,
    protocol::{Command, Event, Outcome},
};
use serde_json::json;

use super::{
    super::{TestCore, run_to_end},
    Step, edit, write,
};

/// Words of the notes of all rails, except for the changed place, which follows every edit.
pub(super) const NOTES: [&str; 18] = [
    "exactly this call before",
    "Your answer was empty",
    "You wrote the same text again",
    "You said what you would do",
    "No file has been changed yet",
    "Your last change failed",
    "still stands in",
    "The request is not done",
    "Since your change",
    "Your answer only repeats",
    "is no longer valid",
    "Nothing was changed",
    "Nothing was written",
    "Call it like this",
    "These are all the tools",
    "Did you mean",
    "Do not make the same call again",
    "cut to fit the window",
];

/// A run of a model that does its work.
struct Healthy {
    prompt: &'static str,
    steps: Vec<Step>,
    files: Vec<(&'static str, String)>,
}

fn read(path: &str) -> Step {
    Step::Call(vec![("read_file", json!({"path": path}))])
}

fn read_lines(path: &str, start: usize, end: usize) -> Step {
    Step::Call(vec![("read_file", json!({"path": path, "start_line": start, "end_line": end}))])
}

fn replace_all(path: &str, old: &str, new: &str) -> Step {
    let args = json!({"path": path, "old_str": old, "new_str": new, "occurrence": 0});
    Step::Call(vec![("edit_file", args)])
}

fn list(pattern: &str) -> Step {
    Step::Call(vec![("list_files", json!({"pattern": pattern}))])
}

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("line {number} of the file\n")).collect()
}

/// Returns a table with many rows, of which some are the same.
fn table(size: usize) -> String {
    let rows =
        (0..200 * (size + 1)).map(|row| format!("| {} | the same words in each of the rows |\n", row / 4));
    let empty = "|   |   |\n".repeat(100 * size.min(10));
    rows.chain([empty]).collect()
}

/// Returns the healthy run of this kind, with `size` as its length.
fn healthy(kind: usize, size: usize) -> Healthy {
    let count = size + 1;
    let numbered = || (0..count).map(|number| format!("value {number} = {number};\n")).collect::<String>();
    let file = |text: String| vec![("f.txt", text)];
    match kind {
        0 => Healthy {
            prompt: "what is in f.txt?",
            steps: vec![read("f.txt"), Step::Say("It holds numbered lines.")],
            files: file(lines(count * 5)),
        },
        1 => Healthy {
            prompt: "change each value in f.txt",
            steps: (0..count)
                .flat_map(|n| [read("f.txt"), edit("f.txt", &format!("= {n};"), &format!("= {};", n + 100))])
                .chain([read("f.txt"), Step::Say("All values are changed.")])
                .collect(),
            files: file(numbered()),
        },
        2 => Healthy {
            prompt: "which of the lines of f.txt is the longest?",
            steps: (0..count)
                .map(|part| read_lines("f.txt", part * 50 + 1, part * 50 + 50))
                .chain([Step::Say("Line 10 is.")])
                .collect(),
            files: file(lines(count * 50)),
        },
        3 => Healthy {
            prompt: "write new files with a number each",
            steps: (0..count)
                .flat_map(|n| {
                    let path = format!("new/{n}.txt");
                    [write(&path, &format!("{n}\n")), read(&path)]
                })
                .chain([list("new/*"), Step::Say("They are there.")])
                .collect(),
            files: Vec::new(),
        },
        4 => Healthy {
            prompt: "rewrite f.txt in other words",
            steps: vec![write("f.txt", &"in other words\n".repeat(count)), Step::Say("It is rewritten.")],
            files: file(lines(40)),
        },
        5 => Healthy {
            prompt: "correct f.txt",
            steps: vec![
                read("f.txt"),
                write("f.txt", &lines(count * 3).replacen("line 2 ", "the second line ", 1)),
                read("f.txt"),
                Step::Say("Line 2 is corrected."),
            ],
            files: file(lines(count * 3)),
        },
        6 => Healthy {
            prompt: "set the port in f.json",
            steps: vec![
                read("f.json"),
                edit("f.json", "\"port\": 80", &format!("\"port\": {}", 8000 + size)),
                edit("f.json", "true", "false"),
                read("f.json"),
                Step::Say("The port is set."),
            ],
            files: vec![("f.json", "{\n  \"port\": 80,\n  \"tls\": true\n}\n".to_owned())],
        },
        7 => Healthy {
            prompt: "what does main.rs do?",
            steps: (0..=size % 3)
                .map(|n| read(&format!("missing{n}.rs")))
                .take(1)
                .chain([list("**/*"), read("f.txt"), Step::Say("There is no main.rs, only f.txt.")])
                .collect(),
            files: file(lines(count)),
        },
        8 => Healthy {
            prompt: "explain how a loop is written in Python",
            steps: vec![Step::Say(
                "I will show it with an example:\n\n```python\nfor number in range(3):\n    print(number)\n```\n\nThe \
                 body is indented.",
            )],
            files: Vec::new(),
        },
        9 => Healthy {
            prompt: "compare the files",
            steps: vec![
                list("*"),
                Step::Call(vec![
                    ("read_file", json!({"path": "f.txt"})),
                    ("read_file", json!({"path": "g.txt"})),
                    ("list_files", json!({"pattern": "*.md"})),
                ]),
                Step::Say("They are the same."),
            ],
            files: vec![("f.txt", lines(count)), ("g.txt", lines(count))],
        },
        10 => Healthy {
            prompt: "rename total to sum in f.txt",
            steps: vec![
                read("f.txt"),
                Step::Call(vec![(
                    "edit_file",
                    json!({"path": "f.txt", "old_str": "total", "new_str": "sum", "occurrence": 0}),
                )]),
                Step::Say("It is renamed."),
            ],
            files: file("total = total + 1\n".repeat(count)),
        },
        // A file that somebody else writes.
        11 => Healthy {
            prompt: "tell me when log.txt says 3",
            steps: (0..count).map(|_| read("log.txt")).chain([Step::Say("It says 3 now.")]).collect(),
            files: vec![("log.txt", "0\n".to_owned())],
        },
        // The old name stays as a part of other words, and in files that are not meant.
        12 => Healthy {
            prompt: "rename load to load_all in all files",
            steps: ["f.py", "g.py"]
                .into_iter()
                .flat_map(|path| [read(path), replace_all(path, "load(", "load_all(")])
                .chain([Step::Say("It is renamed in both files.")])
                .collect(),
            files: vec![
                ("f.py", "def load(n):\n    return reload(n)\n".to_owned()),
                ("g.py", "print(load(1))  # payload, see docs/load.md\n".repeat(count)),
                ("h.md", "Loading takes a down-load.\n".repeat(count)),
            ],
        },
        13 => Healthy {
            prompt: "In f.txt, replace every \"red car\" with \"blue car\".",
            steps: vec![
                replace_all("f.txt", "red car", "blue car"),
                Step::Say("Every red car in f.txt is blue now."),
            ],
            files: vec![
                ("f.txt", "a red car, a red carpet and a covered car\n".repeat(count)),
                ("g.txt", "a red car\n".to_owned()),
            ],
        },
        // Long answers whose lines resemble each other.
        14 => Healthy {
            prompt: "show me the whole table as text",
            steps: vec![Step::SayInBlocks(table(size).leak())],
            files: Vec::new(),
        },
        _ => unreachable!("there are fifteen kinds"),
    }
}

const KINDS: usize = 15;

/// The lengths of which each kind has one run.
const SIZES: usize = 17;

#[tokio::test]
async fn no_rail_says_anything_in_two_hundred_healthy_runs() {
    let mut alarms = Vec::new();
    for number in 0..KINDS * SIZES {
        let (kind, size) = (number % KINDS, number / KINDS);
        let Healthy { prompt, steps, files } = healthy(kind, size);
        let test = TestCore::with_config(steps, |config| config.context_size = Some(131_072));
        for (name, text) in files {
            test.write(name, &text);
        }
        // Nothing is stored, so that no disk has to keep up.
        let mut run = test.start(StartRun { history: History::Provided(Vec::new()), ..test.request(prompt) });
        let mut decided = 0;
        let events = run_to_end(&mut run, |event| match event {
            Event::ToolsProposed(calls) => {
                decided += 1;
                test.write("log.txt", &format!("{decided}\n"));
                calls.iter().map(|call| Command::Approve(call.call.id.clone())).collect()
            }
            _ => Vec::new(),
        })
        .await;
        if !matches!(events.last(), Some(Event::Ended(Outcome::Completed { .. }))) {
            alarms.push(format!("{kind}/{size}: {:?}", events.last()));
        }
        let seen = format!("{:?}", test.model.requests().last().unwrap().messages);
        alarms.extend(
            NOTES.iter().filter(|note| seen.contains(**note)).map(|note| format!("{kind}/{size}: {note}")),
        );
    }
    assert!(alarms.is_empty(), "{alarms:#?}");
}
