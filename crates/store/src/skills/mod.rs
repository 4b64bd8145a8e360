//! Skills, which are prompt templates in `skills/<dir>/SKILL.md` and `skills/*.md`.

mod arguments;
mod confined_dir;
mod frontmatter;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use confined_dir::ConfinedDir;
use frontmatter::FrontMatter;

use kontekst_core::Name;

use crate::config::{Home, file::read_opened};

/// The maximum size of a skill file in bytes. The whole template goes into a prompt, where this size is
/// about 16,000 tokens.
const MAX_FILE: u64 = 64 * 1024;

/// The maximum number of skills, which is far more than a model can choose from.
const MAX_SKILLS: usize = 1000;

/// The maximum length of a description in characters, because it costs prompt tokens in every run.
/// Source: the Agent Skills standard.
const MAX_DESCRIPTION: usize = 1024;

/// A prompt template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: Name,
    /// One line of at most 1024 characters. Empty if the file has no description.
    pub description: String,
    /// True if a user may invoke it with `/name`.
    pub user_invocable: bool,
    /// True if it is hidden from the model.
    pub disable_model_invocation: bool,
    /// The directory of `path`, which may contain other files of the skill.
    pub(crate) dir: PathBuf,
    pub path: PathBuf,
    /// The template, trimmed.
    pub body: String,
}

impl Skill {
    /// Inserts the arguments into the template.
    ///
    /// `$ARGUMENTS` stands for all of them as typed, and `$0`, `$1` … for one each, where quotes group
    /// words. Inserted text is not searched for placeholders again. A placeholder without an argument stays
    /// as it is. If the template has no placeholders, the arguments are appended, so that they are not
    /// lost.
    pub(crate) fn render(&self, arguments: &str) -> String {
        arguments::render(&self.body, arguments)
    }

    /// Returns the rendered template with a header, as it goes into a conversation.
    pub fn prompt_block(&self, arguments: &str) -> String {
        format!("[Skill: {}]\nBase path: {}\n\n{}", self.name, self.dir.display(), self.render(arguments))
    }
}

/// A problem of a skill file, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub path: PathBuf,
    /// The line number, from 1.
    pub(crate) line: Option<usize>,
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All skills, as they were when they were loaded.
#[derive(Clone, Debug, Default)]
pub struct Skills {
    skills: BTreeMap<Name, Arc<Skill>>,
    problems: Vec<Problem>,
    /// The content of each file, so that an unchanged file is not read again.
    files: BTreeMap<PathBuf, CachedFile>,
}

#[derive(Clone, Debug)]
struct CachedFile {
    stamp: Stamp,
    skill: Option<Arc<Skill>>,
    problems: Vec<Problem>,
}

/// Metadata that changes whenever the file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Skills {
    /// Reads the skills. A missing directory has none. Errors are reported by [`Skills::problems`].
    ///
    /// If several files define a skill of the same name, the one whose path sorts last is used. So `x.md`
    /// is used rather than `x/SKILL.md`.
    pub fn load(home: &Home) -> Self {
        Self::default().reload(home)
    }

    /// Like [`Skills::load`], but reads only the files that changed since `self` was loaded.
    #[must_use]
    pub(crate) fn reload(&self, home: &Home) -> Self {
        let mut skills = Self::default();
        let root = home.skills();
        let dir = match ConfinedDir::open(&root) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return skills,
            Err(error) => {
                skills.problem(&root, error.to_string());
                return skills;
            }
        };
        let mut names = match dir.names() {
            Ok(names) => names,
            Err(error) => {
                skills.problem(&root, error.to_string());
                return skills;
            }
        };
        names.sort();
        names.truncate(4 * MAX_SKILLS);
        for name in names.iter().filter(|name| !name.starts_with('.')) {
            let (file, default_name) = match name.strip_suffix(".md") {
                Some(stem) => (PathBuf::from(name), stem),
                None => (Path::new(name).join("SKILL.md"), name.as_str()),
            };
            if skills.files.len() == MAX_SKILLS {
                skills.problem(&root, format!("more than {MAX_SKILLS} skills; the rest is left out"));
                break;
            }
            self.read(&dir, &root, &file, default_name, &mut skills);
        }
        skills
    }

    /// Loads one file into `to`. Takes it from `self` if it has not changed.
    fn read(&self, dir: &ConfinedDir, root: &Path, file: &Path, default_name: &str, to: &mut Self) {
        let path = root.join(file);
        let opened = dir.open_file(file).and_then(|opened| Ok((opened.metadata()?, opened)));
        let (meta, opened) = match opened {
            Ok(opened) => opened,
            // This is a directory without SKILL.md or a file that is not Markdown, so it is no skill.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return;
            }
            Err(error) => return to.problem(&path, confined_dir::describe_error(&error)),
        };
        let stamp = Stamp {
            inode: (meta.dev(), meta.ino()),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        };
        let read = match self.files.get(&path).filter(|read| read.stamp == stamp) {
            Some(read) => read.clone(),
            None => {
                let mut problems = Vec::new();
                let skill = match read_opened(opened, &path, MAX_FILE) {
                    Ok(text) => parse(&text, &path, default_name, &mut problems).map(Arc::new),
                    Err(error) => {
                        problems.push(Problem {
                            path: path.clone(),
                            line: None,
                            message: error.source.to_string(),
                        });
                        None
                    }
                };
                CachedFile { stamp, skill, problems }
            }
        };
        to.problems.extend(read.problems.iter().cloned());
        if let Some(skill) = &read.skill
            && let Some(other) = to.skills.insert(skill.name.clone(), Arc::clone(skill))
        {
            to.problem(&other.path, format!("not used: {} is also skill `{}`", path.display(), skill.name));
        }
        to.files.insert(path, read);
    }

    fn problem(&mut self, path: &Path, message: String) {
        self.problems.push(Problem { path: path.to_owned(), line: None, message });
    }

    pub fn find(&self, name: &str) -> Option<&Skill> {
        self.skills.get(&name.parse().ok()?).map(AsRef::as_ref)
    }

    /// Returns all skills in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.skills.values().map(AsRef::as_ref)
    }

    /// Returns the skills that the model may invoke, in the order of their names.
    pub fn for_model(&self) -> impl Iterator<Item = &Skill> {
        self.iter().filter(|skill| !skill.disable_model_invocation)
    }

    /// Returns what is wrong with the skill files, in the order of the files.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

fn parse(text: &str, path: &Path, default_name: &str, problems: &mut Vec<Problem>) -> Option<Skill> {
    let mut problem = |line, message| problems.push(Problem { path: path.to_owned(), line, message });
    let (front, body) = match frontmatter::split(text) {
        Ok(parts) => parts,
        Err((line, message)) => {
            problem(Some(line), message);
            return None;
        }
    };
    let FrontMatter { name, description, disable_model_invocation, user_invocable } = front;
    let name = match name.as_deref().unwrap_or(default_name).parse() {
        Ok(name) => name,
        Err(error) => {
            problem(None, format!("{error}"));
            default_name.parse().ok()?
        }
    };
    let description = description.unwrap_or_default();
    let mut description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = description.char_indices().nth(MAX_DESCRIPTION) {
        problem(None, format!("the description is cut at {MAX_DESCRIPTION} characters"));
        description.truncate(end);
    }
    Some(Skill {
        name,
        description,
        user_invocable: user_invocable.unwrap_or(true),
        disable_model_invocation: disable_model_invocation.unwrap_or(false),
        dir: path.parent().unwrap_or(path).to_owned(),
        path: path.to_owned(),
        body: body.trim().to_owned(),
    })
}
