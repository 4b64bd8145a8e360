//! Prompts that ask for a change, and prompts that do not.

use super::{END_OF_PROMPT, asks_about_data, asks_for_a_change, has_word, last_paragraph, request_text};

/// Prompts that ask for a change. Many of them are from the documentation and from the tests of this project.
const REQUESTS: &[&str] = &[
    "fix the typo in README.md",
    "fix the typo in greet.py: replace nmae with name",
    "Fix the typo in notes.txt.",
    "replace localhost with 0.0.0.0 in config.toml",
    "replace localhost in config.toml",
    "set debug to false in config.toml",
    "set the port to 9000 in config.toml",
    "Set log_level = \"debug\" in config.toml",
    "change apples to pears in notes.txt",
    "change 8080 to 9000 in config.toml",
    "change author to Bob in README.md",
    "replace tabs with spaces in Makefile",
    "rename x to y in a.py",
    "rename nmae to name in a.py",
    "Rename the function `load` to `read` in store.py and main.py",
    "rename the function foo to bar",
    "replace every foo with bar in c.rs",
    "create a.txt with aaa and b.txt with bbb",
    "create 日本.txt with こんにちは",
    "create hello.py that prints hello",
    "create a file called c.txt that says 'a b'",
    "create an empty file notes.txt",
    "create a new file with the numbers from 1 to 5",
    "Create a python script called count.py",
    "create c.txt and write \"a b\" in it",
    "create a.txt:\n```\nx = 1\n```",
    "write today's date to date.txt",
    "write hello world to greeting.md",
    "write a note to a.txt: call Ada",
    "Write the number of lines of log.txt into count.txt",
    "save the result as out.json",
    "add eggs to notes.txt",
    "add a line with milk to list.txt",
    "Add a line saying 'done' at the end of todo.md",
    "add type hints to src/util.py",
    "Add a docstring to the function area in shapes.py",
    "Add a function `multiply` in calc.py",
    "append the line x to a.txt",
    "Fill in the function median in stats.py",
    "Implement the function is_prime in primes.py",
    "Complete the function in utils.py",
    "Remove the line with foo from a.txt",
    "delete the third line of poem.txt",
    "Bump the version in Cargo.toml to 0.2.0",
    "The port in config.toml is wrong, change it to 9000.",
    "The port in config.toml is wrong. Change it to 9000.",
    "Read config.toml and set the timeout to 30",
    "Find the file that defines MAX and change it to 10 in limits.py",
    "please fix the spelling in docs/intro.md",
    "Check main.py for bugs and fix them",
    "copy a.txt to b.txt",
    "I want you to replace foo with bar in x.c",
    "Replace foo with bar in all files",
    "Turn debug on in settings.json.",
    "The average is wrong: average([2, 4]) returns 6 and should return 3. Find the bug and fix it.",
    "Change the timeout to 30 in settings.ini. Do not change anything else.",
    "Some data\nfrom stdin\n\nwrite this to out.txt",
    "fix the tests",
    "Update the README",
    "Ändere den Port in config.toml auf 9000",
    "Ersetze foo durch bar in a.txt",
];

/// Prompts whose answer is text, or that may be meant so.
const OTHERS: &[&str] = &[
    "",
    "hi",
    "go on",
    "what does this project do?",
    "explain this file",
    "explain this",
    "how do I undo the last commit?",
    "review this change",
    "what is a daemon?",
    "let us start over",
    "let us talk about something else",
    "which of these files is Python? answer with the name only",
    "one word: the capital of France",
    "and the third chapter?",
    "compare the three drafts in notes/",
    "make the greeting polite",
    "make run.sh executable",
    "tidy up the imports",
    "what is in a.txt?",
    "count up",
    "read a.txt",
    "list all markdown files in docs",
    "find and read notes.txt",
    "how many lines are there?",
    "what does the final line say?",
    "Summarize the benefits of local AI.",
    "List three CLI productivity tips.",
    "summarise notes.md",
    "Summarise this: replace foo with bar in a.txt",
    "write a haiku",
    "Write a haiku about main.py",
    "write a poem",
    "Write a summary of notes.md",
    "write documentation for src/util.py",
    "write a function that reverses a string",
    "Write a commit message for the change in src/main.rs",
    "Create a list of the functions in main.py",
    "Create a summary of README.md",
    "make a table of the numbers in data.csv",
    "Generate three names for a cat",
    "Add the numbers in data.csv",
    "Add up the numbers in data.csv",
    "add 2 and 3",
    "fix my grammar: he go to school",
    "Fix the following code:\n```\nprint(1\n```",
    "def f(:\n    pass\n\nfix the bug in the function",
    "diff --git a/x b/x\n\nreview the code and fix nothing",
    "fix this function",
    "explain how to fix the bug in main.py",
    "Tell me what to change in main.py",
    "Show me how you would rename foo in a.py",
    "suggest a fix for the bug in x.py",
    "propose changes to config.toml",
    "print config.toml with the port changed to 9000",
    "Show the fixed version of main.py",
    "can you fix the typo in README.md?",
    "should I change the port in config.toml",
    "If I change the port in config.toml, rename the key, what happens",
    "Look at main.py and say what is wrong. Do not change anything.",
    "Fix main.py, but only in your head, without changing files",
    "change the subject",
    "Change of plans: read a.txt",
    "update me on TODO.md",
    "correct me if I am wrong, a.txt is empty",
    "set up a reading list from books.md",
    "delete a.txt",
    "remove the file old.py",
    "rename a.txt to b.txt",
    "change directory to src",
    "convert notes.md to HTML",
    "Sort names.txt",
    "translate README.md to German",
    "finish the story",
    "turn notes.md into a poem",
    "find a synonym for it and say it",
    "move on",
    "visit example.com and tell me what is there",
    "fetch https://example.com/a.py",
    "compare a.txt to b.txt",
    "Was steht in notes.txt?",
    "Wie ändere ich den Port in config.toml?",
    "Schreibe eine Zusammenfassung von notes.md",
    "Fasse notes.md zusammen",
    "Résume le fichier notes.md",
    "Corrige la faute dans README.md",
    "¿Qué hay en a.txt?",
    "a.txt を読んで",
    "the year 1.5 e.g. in set theory",
];

#[test]
fn requests_for_changes_are_recognised() {
    let missed: Vec<&&str> = REQUESTS.iter().filter(|prompt| !asks_for_a_change(prompt)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_prompt_that_may_want_an_answer_is_no_request_for_a_change() {
    let mistaken: Vec<&&str> = OTHERS.iter().filter(|prompt| asks_for_a_change(prompt)).collect();
    assert!(mistaken.is_empty(), "{mistaken:#?}");
}

#[test]
fn a_long_text_is_judged_without_delay() {
    assert!(!asks_for_a_change(&"fix a.txt ".repeat(100_000)));
    assert!(asks_for_a_change(&format!("{}\n\nfix the typo in a.txt", "word ".repeat(100_000))));
    assert!(!asks_for_a_change(&"\n\n".repeat(100_000)));
    assert!(!asks_for_a_change(&"é.\n".repeat(600)));
}

#[test]
fn a_word_is_found_in_any_case_and_only_whole() {
    for (text, word, found) in [
        ("Run it", "run", true),
        ("RUN", "run", true),
        ("(a.Run)", "run", true),
        ("rerunning", "run", false),
        ("", "run", false),
        ("ÄNDERE das", "ändere", true),
        ("andere", "ändere", false),
        ("read Run.md", "Run", false),
    ] {
        assert_eq!(has_word(text, &["other", word]), found, "{text} {word}");
        let long = format!("{}{text}{}", "x ".repeat(3000), " y".repeat(3000));
        assert_eq!(has_word(&long, &["other", word]), found, "{text} {word} in a long text");
    }
}

#[test]
fn of_a_long_prompt_the_beginning_and_the_end_are_read() {
    let short = "ä".repeat(END_OF_PROMPT);
    assert_eq!(request_text(&short), short);
    let long = format!("first {}middle{}\n\nlast", "ä ".repeat(50_000), "€ ".repeat(50_000));
    let read = request_text(&long);
    assert!(read.starts_with("first ä") && read.ends_with("€ \n\nlast") && !read.contains("middle"));
    assert!(read.len() <= 2 * END_OF_PROMPT + 2);
    assert_eq!(last_paragraph(&read), "last");
}

#[test]
fn a_word_of_the_question_is_looked_for_in_all_data() {
    let data = |word: &str| format!("{}\n{word}\n{}", "x\n".repeat(50_000), "y\n".repeat(50_000));
    assert!(asks_about_data(&format!("{}\n\nhow old is Adalbert?", data("adalbert, 36"))));
    assert!(!asks_about_data(&format!("{}\n\nhow old is Adalbert?", data("Bertram, 36"))));
}
