//! Changes that follow from a wish, a fact or a question, and changes that are there already or cannot be made.

use serde_json::json;

use super::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    [indirect(), orders(), already(), missing(), several(), two()].concat()
}

const SERVER: &str = "# development\nhost = \"localhost\"\nport = 8080\nworkers = 4\n";

fn indirect() -> Vec<Task> {
    let todo = "- paint the fence\n- buy nails\n- call the plumber\n- order gravel\n";
    let sorted = "- buy nails\n- call the plumber\n- order gravel\n- paint the fence\n";
    let tox = "[tox]\nenvlist = py38, py39, py310\n\n[testenv]\ncommands = pytest\n";
    vec![
        Task::new("port_should", Kind::Indirect, "The port should be 9000.")
            .file("server.toml", SERVER)
            .file("README.md", "The address is in server.toml.\n")
            .replaces("server.toml", "8080", "9000"),
        Task::new(
            "great_if",
            Kind::Indirect,
            "It would be great if the list in todo.md were in alphabetical order.",
        )
        .file("todo.md", todo)
        .file("done.md", "- sell the car\n- mow the lawn\n")
        .becomes("todo.md", &[sorted]),
        Task::new(
            "wish_dropped",
            Kind::Indirect,
            "We no longer support Python 3.8, so it has no place in tox.ini any more.",
        )
        .file("tox.ini", tox)
        .file("setup.cfg", "[metadata]\nname = tidy\n")
        .becomes("tox.ini", &[&tox.replace("py38, ", ""), &tox.replace("py38, py39, py310", "py39,py310")]),
        Task::new(
            "wish_longer",
            Kind::Indirect,
            "People complain that they are logged out after 15 minutes, an hour would be better.",
        )
        .file("session.toml", "[login]\ntimeout_minutes = 15\nmax_tries = 5\n")
        .file("mail.toml", "[smtp]\nretry_minutes = 15\n")
        .replaces("session.toml", "timeout_minutes = 15", "timeout_minutes = 60"),
        Task::new(
            "wish_name",
            Kind::Indirect,
            "I'm called Annette Wolff, with two n and two t, and AUTHORS has it wrong.",
        )
        .file("AUTHORS", "Piet Jansen\nAnnete Wolff\nLu Chen\n")
        .file("README.md", "Written by the people in AUTHORS.\n")
        .replaces("AUTHORS", "Annete", "Annette"),
    ]
}

fn orders() -> Vec<Task> {
    let shapes = "def a(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n    return a(width, height) * depth\n";
    vec![
        Task::new("could_you", Kind::Tone, "Could you set the level in logging.ini to WARNING?")
            .file("logging.ini", "[root]\nlevel = DEBUG\nfile = app.log\n")
            .file("app.ini", "[app]\nlevel = 3\n")
            .replaces("logging.ini", "DEBUG", "WARNING"),
        Task::new(
            "would_you_mind",
            Kind::Tone,
            "Would you mind calling the function area instead of a in shapes.py?",
        )
        .file("shapes.py", shapes)
        .file("main.py", "import shapes\n\nprint(shapes.volume(1, 2, 3))\n")
        .becomes("shapes.py", &[&shapes.replace(" a(", " area(")]),
    ]
}

fn already() -> Vec<Task> {
    vec![
        Task::new("already_port", Kind::Already, "Set the port in server.toml to 8080.")
            .file("server.toml", SERVER)
            .file("client.toml", "port = 8081\n")
            .says(&["already", "needed", "nothing", "unchanged", "no change", "no changes", "no need"])
            .answers("The port is 8080 already, so I changed nothing.", "The port is set to 8080 now."),
        Task::new("already_import", Kind::Already, "Make sure that main.py imports json.")
            .file("main.py", "import json\nimport sys\n\nprint(json.dumps(sys.argv[1:]))\n")
            .says(&["already", "needed", "nothing", "imports", "no change", "no changes", "no need"])
            .answers("main.py already imports json.", "I have added the import."),
        Task::new("de_already", Kind::Already, "Bitte sorge dafür, dass in LICENSE.txt das Jahr 2026 steht.")
            .file("LICENSE.txt", "Copyright 2026 Beispiel GmbH\n\nAlle Rechte vorbehalten.\n")
            .says(&[
                "bereits",
                "schon",
                "nötig",
                "keine Änderung",
                "keine Änderungen",
                "nichts",
                "unverändert",
                "already",
            ])
            .answers("In LICENSE.txt steht bereits 2026.", "Das Jahr ist jetzt 2026."),
    ]
}

/// Words of which one is in an answer that says that something does not exist, with both forms of the apostrophe.
const ABSENT: &[&str] = &[
    "no",
    "not",
    "missing",
    "cannot",
    "doesn't",
    "doesn’t",
    "isn't",
    "isn’t",
    "couldn't",
    "couldn’t",
    "can't",
    "can’t",
];

fn missing() -> Vec<Task> {
    vec![
        Task::new("missing_file", Kind::Missing, "Change the timeout in limits.yaml to 20.")
            .file("app.py", "print(\"hello\")\n")
            .file("README.md", "# Hello\n\nPrints hello.\n")
            .says(ABSENT)
            .answers("There is no limits.yaml here.", "The timeout is 20 now."),
        Task::new("missing_person", Kind::Missing, "What is Petra's phone number? It is in contacts.txt.")
            .file("contacts.txt", "Paul: 555-0191\nPeter: 555-0177\nMia: 555-0123\n")
            .says(ABSENT)
            .answers("contacts.txt has no entry for Petra.", "Petra's number is 555-0177."),
    ]
}

fn several() -> Vec<Task> {
    let css = ["body { margin: 0; }\n", "nav { color: #333; }\n", "table { width: 100%; }\n"];
    let notice = "/* (c) 2026 Example */\n";
    let page = |name: &str| format!("<p>Mail us: <a href=\"https://example.org/{name}\">{name}</a></p>\n");
    let package = |name: &str, version: &str| json!({"name": name, "version": version, "private": true});
    let mut header = Task::new(
        "header",
        Kind::Several,
        "Every .css file should begin with the line /* (c) 2026 Example */",
    )
    .file("index.html", "<link rel=\"stylesheet\" href=\"css/base.css\">\n");
    for (path, text) in ["css/base.css", "css/nav.css", "css/print/table.css"].iter().zip(css) {
        header = header.file(path, text).becomes(path, &[&format!("{notice}{text}")]);
    }
    let mut domain = Task::new(
        "domain",
        Kind::Several,
        "We have moved from example.org to example.net. Please update the links in all pages.",
    )
    .file("history.txt", "2019: we register a domain\n");
    for path in ["index.html", "about.html", "de/index.html", "de/kontakt.html"] {
        let text = page(path.rsplit('/').next().unwrap_or(path));
        domain = domain.file(path, &*text).becomes(path, &[&text.replace("example.org", "example.net")]);
    }
    let mut bump = Task::new("bump", Kind::Several, "All three packages get version 2.0.0.")
        .file("README.md", "Three packages: a, b and c.\n");
    for name in ["a", "b", "c"] {
        let path = format!("packages/{name}/package.json");
        let before = format!("{:#}\n", package(name, "1.8.3"));
        bump = bump.file(&path, before).becomes_json(&path, package(name, "2.0.0"));
    }
    vec![header, domain, bump]
}

fn two() -> Vec<Task> {
    let essay = "Teh sea is wide. Of all teh ships, teh oldest lies in teh harbour.\n";
    vec![
        Task::new(
            "ask_and_raise",
            Kind::Two,
            "Which version are we at, according to VERSION? After that, raise it to 1.3.0.",
        )
        .file("VERSION", "1.2.9\n")
        .file("CHANGELOG.md", "# 1.2.9\n\n- faster start\n")
        .becomes("VERSION", &["1.3.0\n"])
        .says(&["1.2.9"])
        .answers("It was 1.2.9, and is 1.3.0 now.", "It is 1.2.9."),
        Task::new(
            "fix_and_count",
            Kind::Two,
            "essay.txt has teh in place of the. Correct that, and tell me how many times it was wrong.",
        )
        .file("essay.txt", essay)
        .file("outline.txt", "sea, ships, harbour\n")
        .becomes("essay.txt", &[&essay.replace("teh", "the").replace("Teh", "The")])
        .says(&["4", "four"])
        .answers("I corrected it in 4 places.", "It was wrong 4 times."),
    ]
}
