//! `kontekst skills`: lists the skills and shows one.

use std::io::Write;

use clap::Subcommand;
use serde_json::{Value, json};

use kontekst_core::nearest;
use kontekst_store::{
    config::Home,
    skills::{Skill, Skills},
};

use super::{error::CliError, json::print_json, table::Table};

/// List the skills, or show one
///
/// A skill is a prompt template: the file ~/.kontekst/skills/NAME.md, or the directory NAME with a file SKILL.md
/// and other files. The file can begin with settings, as TOML between lines of `+++` or as YAML between lines of
/// `---`: name, description, user_invocable and disable_model_invocation. In the template, $ARGUMENTS stands for all
/// text after the skill's name, and $0, $1 and so on stand for its words, which quotes can join.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kontekst skills
  echo 'Summarize this file in three lines: $0' > ~/.kontekst/skills/summarize.md
  kontekst run \"/summarize README.md\"")]
pub(super) struct Args {
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the skills; the default if no command is given
    List,
    /// Show a skill's template
    Show {
        /// The name of the skill, with or without the slash
        name: String,
    },
}

/// Runs the command on the files of the data directory. The daemon is not asked.
///
/// # Errors
///
/// The exit status is 2 for a skill that does not exist.
pub(super) fn run(args: Args, home: &Home, out: &mut dyn Write) -> Result<(), CliError> {
    let Args { json, command } = args;
    home.create()?;
    let skills = Skills::load(home);
    match command.unwrap_or(Command::List) {
        Command::List if json => {
            let listed: Value = skills.iter().map(to_json).collect();
            let problems: Value = skills.problems().iter().map(ToString::to_string).collect();
            print_json(out, &json!({"skills": listed, "problems": problems}))
        }
        Command::List => list(&skills, home, out),
        Command::Show { name } => show(find(&skills, &name)?, json, out),
    }
}

fn find<'a>(skills: &'a Skills, name: &str) -> Result<&'a Skill, CliError> {
    let name = name.strip_prefix('/').unwrap_or(name);
    skills.find(name).ok_or_else(|| {
        let error = CliError::usage(format!("no skill `{}`", name.chars().take(128).collect::<String>()));
        // If its file is there but cannot be used, the error tells why.
        let is_its_file = |path: &std::path::Path| {
            path.ancestors().take(2).any(|part| part.file_stem().is_some_and(|stem| stem == name))
        };
        match skills.problems().iter().find(|problem| is_its_file(&problem.path)) {
            Some(problem) => error.cause(problem.to_string()),
            None => {
                let near = nearest(name, skills.iter().map(|skill| skill.name.as_str()));
                error
                    .maybe_hint(near.map(|near| format!("did you mean `{near}`?")))
                    .hint("run `kontekst skills` to list the skills")
            }
        }
    })
}

fn list(skills: &Skills, home: &Home, out: &mut dyn Write) -> Result<(), CliError> {
    if skills.iter().next().is_none() {
        writeln!(out, "No skills. A file NAME.md in {} makes one.", home.skills().display())?;
    } else {
        let mut table = Table::new(["NAME", "INVOKED BY", "DESCRIPTION"]);
        for skill in skills.iter() {
            table.row([skill.name.to_string(), invoked_by(skill).to_owned(), skill.description.clone()]);
        }
        table.write(out)?;
    }
    for (at, problem) in skills.problems().iter().enumerate() {
        writeln!(out, "{}{problem}", if at == 0 { "\n" } else { "" })?;
    }
    Ok(())
}

fn invoked_by(skill: &Skill) -> &'static str {
    match (skill.user_invocable, !skill.disable_model_invocation) {
        (true, true) => "you, model",
        (true, false) => "you",
        (false, true) => "model",
        (false, false) => "nobody",
    }
}

fn to_json(skill: &Skill) -> Value {
    json!({
        "name": skill.name,
        "description": skill.description,
        "user_invocable": skill.user_invocable,
        "disable_model_invocation": skill.disable_model_invocation,
        "path": skill.path.to_string_lossy(),
    })
}

fn show(skill: &Skill, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    if json {
        let mut json = to_json(skill);
        json["body"] = Value::from(skill.body.as_str());
        return print_json(out, &json);
    }
    writeln!(out, "Skill        {}", skill.name)?;
    if !skill.description.is_empty() {
        writeln!(out, "Description  {}", skill.description)?;
    }
    writeln!(out, "Invoked by   {}", invoked_by(skill))?;
    writeln!(out, "File         {}", skill.path.display())?;
    Ok(writeln!(out, "\n{}", skill.body)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::{Expect, expect};

    use crate::cli::printable::PrintableWriter;

    use super::*;

    #[test]
    fn skills_are_listed_and_shown() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::find(Some(dir.path().join("x"))).unwrap();
        let text = |command, json| {
            let mut out = Vec::new();
            run(Args { json, command }, &home, &mut PrintableWriter::new(&mut out, true))?;
            Ok(String::from_utf8(out).unwrap().replace(&home.root().display().to_string(), "HOME"))
        };
        let check = |command, json, expect: &Expect| {
            let shown = text(command, json).unwrap_or_else(|error: CliError| {
                error.to_string().replace(&home.root().display().to_string(), "HOME")
            });
            expect.assert_eq(&shown);
        };
        let show = |name: &str| Some(Command::Show { name: name.to_owned() });
        check(
            None,
            false,
            &expect![[r#"
            No skills. A file NAME.md in HOME/skills makes one.
        "#]],
        );
        fs::write(
            home.skills().join("sum.md"),
            "---\ndescription: Sums up\nuser-invocable: false\n---\nSum: $0\n",
        )
        .unwrap();
        fs::write(home.skills().join("bad.md"), "+++\nname = 3\n+++\n").unwrap();
        check(
            None,
            false,
            &expect![[r#"
            NAME  INVOKED BY  DESCRIPTION
            sum   model       Sums up

            HOME/skills/bad.md, line 2: invalid type: integer `3`, expected a string
        "#]],
        );
        check(
            None,
            true,
            &expect![[r#"
            {
              "problems": [
                "HOME/skills/bad.md, line 2: invalid type: integer `3`, expected a string"
              ],
              "skills": [
                {
                  "description": "Sums up",
                  "disable_model_invocation": false,
                  "name": "sum",
                  "path": "HOME/skills/sum.md",
                  "user_invocable": false
                }
              ]
            }
        "#]],
        );
        check(
            show("/sum"),
            false,
            &expect![[r#"
            Skill        sum
            Description  Sums up
            Invoked by   model
            File         HOME/skills/sum.md

            Sum: $0
        "#]],
        );
        check(
            show("bad"),
            false,
            &expect![[r#"
            kontekst: error: no skill `bad`
              caused by: HOME/skills/bad.md, line 2: invalid type: integer `3`, expected a string
        "#]],
        );
        check(
            show("none"),
            false,
            &expect![[r#"
                kontekst: error: no skill `none`
                  hint: run `kontekst skills` to list the skills
            "#]],
        );
    }
}
