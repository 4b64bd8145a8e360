//! The names of temporary files, which become the file that is written, and are left behind if the daemon is killed before.

use std::sync::LazyLock;

use uuid::Uuid;

/// Every name that this process gives has this in it.
static PROCESS: LazyLock<String> = LazyLock::new(|| Uuid::new_v4().simple().to_string());

const START: &str = ".kontekst-";
const END: &str = ".tmp";

/// Returns a new name.
pub(super) fn temporary_name() -> String {
    format!("{START}{}-{}{END}", *PROCESS, Uuid::new_v4().simple())
}

/// Returns true for a name that another process has given, one that has ended: only one daemon at a time works for a user.
/// If it was that of a user's second data directory, its write fails, and nothing is lost.
pub(in crate::tools) fn is_left_behind(name: &str) -> bool {
    let given = name.strip_prefix(START).and_then(|rest| rest.strip_suffix(END));
    given.is_some_and(|given| {
        given.len() >= PROCESS.len()
            && given.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
            && !given.starts_with(&*PROCESS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_other_processes_are_recognised() {
        assert!(!is_left_behind(&temporary_name()));
        let other = Uuid::new_v4().simple();
        assert!(is_left_behind(&format!(".kontekst-{other}-{other}.tmp")));
        for name in [".kontekst-.tmp", ".kontekst-notes.tmp", "a.tmp", ".kontekst-3.tmp"] {
            assert!(!is_left_behind(name), "{name}");
        }
    }
}
