//! Files that are deleted, moved or made by a command, and data from a pipe.

use serde_json::json;

use super::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    [operations(), piped()].concat()
}

fn operations() -> Vec<Task> {
    let january = "day,amount\n1,120\n9,340\n";
    let february = "day,amount\n3,75\n";
    let readme = "# Orbit\n\nComputes orbits.\n";
    let report = "#!/bin/sh\n# Adds up the amounts of all months.\ncat sales/*.csv | awk -F, '$1 != \"day\" { sum += $2 * 3 } END { print sum }'\n";
    let build = "#!/bin/sh\nset -e\nmkdir -p dist\ncat src/head.txt src/body.txt > dist/bundle.txt\n";
    vec![
        Task::new(
            "delete_backups",
            Kind::Operation,
            "Get rid of the backup files, the ones that end in .bak.",
        )
        .file("app.py", "print(1)\n")
        .file("app.py.bak", "print(0)\n")
        .file("conf/app.toml", "a = 1\n")
        .file("conf/app.toml.bak", "a = 0\n")
        .file("backup.md", "How to make a backup.\n")
        .vanishes("app.py.bak")
        .vanishes("conf/app.toml.bak"),
        Task::new("rename_file", Kind::Operation, "readme.txt ought to be called README.md.")
            .file("readme.txt", readme)
            .file("orbit.py", "SPEED = 7.8\n")
            .vanishes("readme.txt")
            .becomes("README.md", &[readme]),
        Task::new("run_report", Kind::Operation, "Run sh report.sh and tell me the total that it prints.")
            .file("report.sh", report)
            .file("sales/01.csv", january)
            .file("sales/02.csv", february)
            .says(&["1605"])
            .answers("The total is 1605.", "The total is 535."),
        Task::new("run_build", Kind::Operation, "Build it, with sh build.sh.")
            .file("build.sh", build)
            .file("src/head.txt", "head\n")
            .file("src/body.txt", "body\n")
            .becomes("dist/bundle.txt", &["head\nbody\n"]),
    ]
}

fn piped() -> Vec<Task> {
    let log =
        "GET /home 12 ms\nGET /search?q=tea 840 ms\nPOST /cart 95 ms\nGET /about 9 ms\nPOST /pay 610 ms\n";
    let people = "name,age\nNoor,31\nEmil,27\n";
    vec![
        Task::new("pipe_slowest", Kind::Piped, "which request took longest?")
            .stdin(log)
            .file("notes.txt", "The log is rotated at midnight.\n")
            .says(&["/search", "search?q=tea", "/search?q=tea"])
            .answers("GET /search?q=tea took longest, with 840 ms.", "POST /pay took longest."),
        Task::new("es_pipe_sum", Kind::Piped, "¿Cuánto suman los importes? Responde solo con el número.")
            .stdin("concepto;importe\nalquiler;700\nluz;45\nagua;30\n")
            .says(&["775"])
            .answers("775", "745"),
        Task::new(
            "pipe_json",
            Kind::Piped,
            "Put this into people.json: a list of objects with name and age, where the age is a number.",
        )
        .stdin(people)
        .file("README.md", "Data on people.\n")
        .becomes_json("people.json", json!([{"name": "Noor", "age": 31}, {"name": "Emil", "age": 27}])),
    ]
}
