//! Tests that a page costs little memory, whatever its markup is.
//!
//! The memory of a process can only be measured if nothing else runs in it, so the test starts itself again for each
//! page.

use std::{env, fs, process::Command};

use super::*;
use crate::{builtin::MAX_OUTPUT, hostile_input::rounds};

const CHILD: &str = "KONTEKST_TEST_HTML_SHAPE";

/// Pages: a name, the start, the part that is repeated, and the end. A `#` in the part is its number.
const SHAPES: &[(&str, &str, &str, &str)] = &[
    ("list items", "<ul>", "<li>a", ""),
    ("closed list items", "<ul>", "<li>a</li>", "</ul>"),
    ("nested lists", "", "<ul><li>a", ""),
    ("numbered lists", "", "<ol><li>a</ol>", ""),
    ("cells", "<table><tr>", "<td>a</td>", "</table>"),
    ("empty cells", "<table><tr>", "<td>", "a"),
    ("rows", "<table>", "<tr><td>a", "</table>"),
    ("nested tables", "", "<table><tr><td>", ""),
    ("one attribute", "", "<p a=b>", ""),
    ("attributes", "<p ", "a#=b ", ">x"),
    ("attributes without a value", "<p ", "a# ", ""),
    ("a long attribute", "<a href='", "x", "'>y</a>"),
    ("nested divisions", "", "<div>", ""),
    ("nested quotes", "", "<blockquote>", "a"),
    ("quotes with text", "", "<blockquote>a", ""),
    ("nested marks", "", "<b>", "a"),
    ("marks with text", "", "<b>a", ""),
    ("marks in paragraphs", "", "<b><p>", ""),
    ("links", "", "<a href=x>a</a>", ""),
    ("links to many places", "", "<a href=x#>a</a>", ""),
    ("open links", "", "<a href=x>", ""),
    ("entities", "", "&amp;", ""),
    ("incomplete entities", "", "&notit", ""),
    ("ampersands", "", "&", ""),
    ("comments", "", "<!-- x -->", ""),
    ("an open comment", "<!--", "x", ""),
    ("open tags", "", "<", ""),
    ("unknown tags", "", "<x-#>", ""),
    ("a long tag", "<", "x", ">"),
    ("an open script", "<script>", "x<", ""),
    ("hidden elements", "", "<div hidden>", ""),
    ("headings", "", "<h1>a", ""),
    ("preformatted", "<pre>", "a\n", ""),
    ("line breaks", "a", "<br>", "b"),
    ("one word", "", "a", ""),
    ("white space", "", " ", ""),
    ("pictures", "", "<img alt=a>", ""),
    ("vector graphics", "", "<svg><path>", ""),
    ("end tags", "", "</a>", ""),
    ("document types", "", "<!doctype a>", ""),
];

/// The most by which the kernel's count of resident memory may be off, in bytes: each thread adds up to 64 pages before it is
/// counted. Source: proc_pid_status(5), which calls the values inaccurate, and `TASK_RSS_EVENTS_THRESH` in the kernel.
const COUNTING_ERROR: usize = 64 * 4096;

/// The size of a page, in bytes.
fn page_size() -> usize {
    rounds(400_000, 2_000_000)
}

fn page((_, start, part, end): (&str, &str, &str, &str), size: usize) -> String {
    let mut page = String::with_capacity(size);
    page.push_str(start);
    for number in 0.. {
        let numbered = part.replace('#', &number.to_string());
        if page.len() + numbered.len() + end.len() > size {
            break;
        }
        page.push_str(&numbered);
    }
    page + end
}

/// Returns the memory, in kB, that a new process needs to convert a page of this shape.
fn peak_of(shape: usize) -> u64 {
    let test = concat!(module_path!(), "::child_that_converts").split_once("::").unwrap().1;
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "--test-threads=1", test])
        .env(CHILD, shape.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let peak = text.split_once("PEAK ").unwrap_or_else(|| panic!("{shape}: {output:?}")).1;
    peak.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_page_of_any_shape_costs_little_memory() {
    if cfg!(not(target_os = "linux")) {
        return; // `VmHWM` is in a file of Linux
    }
    // The text, its links and the buffers of the reader, beside the page itself.
    let limit = (2 * page_size() + 4 * MAX_OUTPUT + COUNTING_ERROR) as u64 / 1024;
    let peaks = SHAPES.iter().enumerate().map(|(number, (name, ..))| (*name, peak_of(number)));
    let too_large: Vec<_> = peaks.filter(|(_, kb)| *kb > limit).collect();
    assert!(too_large.is_empty(), "more than {limit} kB: {too_large:?}");
}

/// The test above starts this in another process. It does nothing when it runs by itself.
#[test]
#[expect(clippy::print_stdout, reason = "the other process reads it")]
fn child_that_converts() {
    let Ok(number) = env::var(CHILD) else { return };
    let shape = SHAPES[number.parse::<usize>().unwrap()];
    let (small, page) = (page(shape, 4000), page(shape, page_size()));
    to_text(&small, MAX_OUTPUT + 1, &Cancel::new()).unwrap(); // the code is in memory from here on
    let before = status("VmRSS");
    fs::write("/proc/self/clear_refs", "5").unwrap(); // the peak is counted from here
    let text = to_text(&page, MAX_OUTPUT + 1, &Cancel::new()).unwrap();
    assert!(text.len() <= 2 * MAX_OUTPUT + 1024, "{}: {} bytes of text", shape.0, text.len());
    println!("PEAK {} kB: {}", status("VmHWM").saturating_sub(before), shape.0);
}

/// Returns a value of `/proc/self/status`, in kB.
fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
