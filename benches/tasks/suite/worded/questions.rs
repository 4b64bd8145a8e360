//! Questions: those that sound like orders, those about how something would be done, and those that are not about files.

use super::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    [about_files(), howto(), knowledge()].concat()
}

fn about_files() -> Vec<Task> {
    vec![
        Task::new("tell_port", Kind::Tone, "Tell me which port db.toml sets for the database.")
            .file("db.toml", "[database]\nport = 5433\n\n[cache]\nport = 6380\n")
            .says(&["5433"])
            .answers("5433", "It is port 6380."),
        Task::new("list_open", Kind::Tone, "List what is still open in plan.md.")
            .file("plan.md", "# Plan\n\n- [x] rooms\n- [ ] invoices\n- [x] posters\n- [ ] catering\n")
            .says(&["invoices"])
            .says(&["catering"])
            .answers("Open are invoices and catering.", "Open are invoices."),
        Task::new(
            "show_only",
            Kind::Tone,
            "Show me how app.yaml would look with debug switched on. Leave the file as it is.",
        )
        .file("app.yaml", "name: shop\ndebug: false\nport: 8000\n")
        .says(&["debug: true"])
        .answers("name: shop\ndebug: true\nport: 8000", "Done."),
    ]
}

fn howto() -> Vec<Task> {
    vec![
        Task::new("how_branch", Kind::Howto, "How would I rename the branch master to main in git?")
            .file("README.md", "The branch is called master.\n")
            .says(&["git branch"])
            .answers("With git branch -m master main.", "Done."),
        Task::new("how_port", Kind::Howto, "How would I make this listen on another port?")
            .file("app.py", "import tomllib\n\nport = tomllib.load(open(\"server.toml\", \"rb\"))[\"port\"]\nprint(\"listening on\", port)\n")
            .file("server.toml", "port = 8080\n")
            .says(&["server.toml"])
            .answers("Change port in server.toml.", "It listens on port 8081 now."),
    ]
}

fn knowledge() -> Vec<Task> {
    let file = ("app.py", "print(\"hello\")\n");
    vec![
        Task::new("hello", Kind::Knowledge, "Hi!")
            .file(file.0, file.1)
            .answers("Hello! What can I do for you?", " \n"),
        Task::new("capital", Kind::Knowledge, "What is the capital of Australia?")
            .file(file.0, file.1)
            .says(&["Canberra"])
            .answers("Canberra.", "Sydney."),
        Task::new("fr_minutes", Kind::Knowledge, "Combien de minutes y a-t-il dans une journée ?")
            .file(file.0, file.1)
            .says(&["1440", "1 440", "1.440"])
            .answers("Il y en a 1440.", "Il y en a 1400."),
        Task::new("show_code", Kind::Knowledge, "Write me a Python function that reverses a string.")
            .file(file.0, file.1)
            .says(&["def"])
            .says(&["[::-1]", "reversed", "reverse", "join"])
            .answers("def reverse(text):\n    return text[::-1]", "Done."),
    ]
}
