//! `search_files` in a tree with many files.

use std::fs;

use serde_json::json;

use crate::{fake_llama::Reply, hostile_input::rounds, test_home::TestHome};

/// The files in each directory.
const IN_DIRECTORY: usize = 500;

#[test]
fn a_search_in_a_large_tree_is_bounded() {
    let search = |pattern: &str| Reply::calls([("search_files", json!({"pattern": pattern}))]);
    let script = || [search("one"), search("needle"), search("no such text"), Reply::text("done")];
    let (model, home) = TestHome::with_model(script());
    let work = |files: usize| {
        for number in 0..files {
            let (directory, file) = (number / IN_DIRECTORY, number % IN_DIRECTORY);
            let dir = home.work_dir().join(format!("d{directory:03}"));
            if file == 0 {
                fs::create_dir_all(&dir).unwrap();
            }
            let text = if number == files / 2 { "needle\n" } else { "one line\nand one more\n" };
            fs::write(dir.join(format!("f{file:03}.txt")), text).unwrap();
        }
    };
    work(IN_DIRECTORY);
    home.run(&["run", "--new", "go"]).success();
    let before = home.daemon_memory("VmHWM:");
    // In a long test more than the 100,000 files of one search.
    let files = rounds(4_000, 101_000);
    work(files);
    script().into_iter().for_each(|reply| model.push(reply));
    home.run(&["run", "--new", "go"]).success();
    let taken = home.daemon_memory("VmHWM:") - before;
    assert!(taken < 64 << 10, "the search took {taken} KiB");
    let chats = model.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results: Vec<&str> = results.map(|message| message["content"].as_str().unwrap()).collect();
    let [many, needle, none] = results[..] else { panic!("{results:?}") };
    assert!(many.starts_with("d000/f000.txt:1: one line\n") && many.contains("50 of "), "{many}");
    assert!(many.len() < 8_000, "{}", many.len());
    // A machine that is too slow for all files says so, as it does beyond the limit.
    let is_whole = |result: &str| !result.contains("not everything was searched: ");
    assert_eq!(is_whole(none), is_whole(many) && files <= 100_000, "{none}");
    if is_whole(needle) {
        assert!(needle.starts_with("d004/f000.txt:1: needle"), "{needle}");
        assert!(none.starts_with(&format!("no line matches no such text in {files} files")), "{none}");
    }
}
