//! Finds the files that have a text.

use std::time::{Duration, Instant};

use grep_regex::RegexMatcherBuilder;
use grep_searcher::{Searcher, Sink, SinkMatch};

use super::{
    MAX_FILES,
    file_search::{self, Input, Interruptible},
    lines::Limits,
};
use crate::{
    core::Cancel,
    tools::{Effect, Workspace, builtin::walk, read_effect},
};

/// Returns the first files that have the text, not as a part of a longer word, at most `max` of them, as far as they are found
/// within `time`. None for a text of several lines. A file about which a person would be asked is left out.
pub(in crate::tools::builtin) fn files_with(
    workspace: &Workspace,
    text: &str,
    max: usize,
    time: Duration,
    cancel: &Cancel,
) -> Vec<String> {
    let end = Instant::now() + time;
    let mut builder = RegexMatcherBuilder::new();
    let Ok(pattern) = builder.fixed_strings(true).word(true).line_terminator(Some(b'\n')).build(text) else {
        return Vec::new();
    };
    let has = |name: &String| {
        let path = workspace.path(name).ok();
        let path = path.filter(|path| read_effect::of_file(workspace, path) == Effect::Reads);
        let Some(file) = path.and_then(|path| workspace.open(&path).ok()) else { return false };
        let input = Input::File(Interruptible::new(&file, cancel, end));
        let mut first = First(false);
        file_search::search(&mut file_search::searcher(Limits::default()), &pattern, input, &mut first);
        first.0
    };
    let names = walk::all_files(workspace, MAX_FILES, time, cancel);
    let names = names.into_iter().take_while(|_| !cancel.is_cancelled() && Instant::now() <= end);
    names.filter(has).take(max).collect()
}

/// True once a line was found.
struct First(bool);

impl Sink for &mut First {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, _: &SinkMatch<'_>) -> std::io::Result<bool> {
        self.0 = true;
        Ok(false)
    }
}
