//! Appending records: after a crash, on a full disk, and from several processes.

use std::{os::unix::fs::PermissionsExt as _, process::Command};

use kontekst_core::RunId;

use super::{super::record::MAX_LINE, *};

#[test]
fn appended_records_are_read_back() {
    let test = TestSessions::new();
    let mut log = test.open();
    let run = RunId::new();
    let messages =
        [text(Role::User, "hé\n\u{2028}\"", 4), calls(&["c"]), result("c"), text(Role::Assistant, "x", 1)];
    append(&mut log, &messages[..2]);
    log.append(&[Record::ToolStarted { call: &CallId::new("c"), run: &run }]).unwrap();
    append(&mut log, &messages[2..]);
    let tail = log.tail(100, &bytes_by_four).unwrap();
    assert_eq!(tail, Tail { messages: messages.to_vec(), tokens: 10, has_older: false, damaged: 0 });
    let transcript = test.sessions.transcript(&test.id).unwrap();
    assert_eq!(transcript, Transcript { messages: messages.to_vec(), damaged: vec![] });
    assert_eq!(fs::read_to_string(test.path()).unwrap().lines().count(), 5);
}

#[test]
fn lines_of_other_programs_are_read() {
    let test = TestSessions::new();
    test.write(concat!(
        "{\"role\":\"user\",\"content\":\"explain this\",\"tokens\":15}\r\n",
        "\n",
        "{\"role\":\"assistant\",\"content\":\"This is...\",\"tokens\":42,\"extra\":[1]}\n",
        "{\"mark\":\"from a later version\",\"x\":1}\n",
        "{\"role\":\"system\",\"content\":\"you are\"}\n",
        "{\"role\":\"user\"}\n",
    ));
    let tail = test.open().tail(1000, &bytes_by_four).unwrap();
    assert_eq!((shape(&tail.messages).as_str(), tail.tokens, tail.damaged), ("u a u", 58, 0));
}

#[test]
fn a_session_is_open_only_once_at_a_time() {
    let test = TestSessions::new();
    let log = test.open();
    assert!(matches!(test.sessions.open(&test.id), Err(SessionError::Busy(_))));
    assert!(matches!(test.sessions.delete(&test.id, true), Err(SessionError::Busy(_))));
    assert!(test.sessions.transcript(&test.id).is_ok(), "reading needs no lock");
    drop(log);
    test.open();
}

#[test]
fn a_run_that_stored_nothing_leaves_no_session() {
    let test = TestSessions::new();
    for stores in [false, true] {
        let mut log = test.open();
        test.sessions.set_title(&test.id, "t").unwrap();
        if stores {
            append(&mut log, &[text(Role::User, "a", 1)]);
        }
        drop(log);
        assert_eq!(test.files().len(), if stores { 2 } else { 0 });
    }
    // One that others have made stays, even if it is empty.
    test.write("");
    drop(test.open());
    assert_eq!(test.files().len(), 2);
}

#[test]
fn a_torn_end_is_moved_to_a_file_of_its_own() {
    let test = TestSessions::new();
    test.write("{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"us");
    let mut log = test.open();
    append(&mut log, &[text(Role::User, "b", 1)]);
    let transcript = test.sessions.transcript(&test.id).unwrap();
    assert_eq!((transcript.messages.len(), transcript.damaged.len()), (2, 0));
    let torn = test.files().into_iter().find(|name| name.contains(".torn-")).unwrap();
    let torn = test.home.sessions().join(torn);
    assert_eq!(fs::read_to_string(&torn).unwrap(), "{\"role\":\"us");
    assert_eq!(fs::metadata(torn).unwrap().permissions().mode() & 0o777, 0o600);
    drop(log);
    test.sessions.delete(&test.id, false).unwrap();
    assert_eq!(test.files(), Vec::<String>::new(), "the evidence goes with the session");
}

#[test]
fn a_directory_sync_that_has_begun_is_waited_for() {
    let test = TestSessions::new();
    let mut log = test.open();
    let mut thread = None;
    log.begin_dir_sync(|sync| thread = Some(std::thread::spawn(sync)));
    log.begin_dir_sync(|_| panic!("it has begun"));
    append(&mut log, &[text(Role::User, "a", 1)]);
    thread.unwrap().join().unwrap();
    log.begin_dir_sync(|_| panic!("the entry is on disk"));
    drop(log);
    let mut log = test.open();
    log.begin_dir_sync(|_| panic!("the file is not new"));
    append(&mut log, &[text(Role::User, "b", 1)]);
}

#[test]
fn a_directory_sync_that_never_ran_is_done_with_the_first_record() {
    let test = TestSessions::new();
    let mut log = test.open();
    log.begin_dir_sync(drop);
    fs::remove_dir_all(test.home.sessions()).unwrap();
    let record = text(Role::User, "a", 1);
    assert!(log.append(&[Record::Message(&record)]).is_err(), "there is no directory to sync");
}

#[test]
fn a_cut_at_every_byte_loses_no_whole_record() {
    let test = TestSessions::new();
    let mut whole = Vec::new();
    let mut ends = vec![0];
    for number in 0..200 {
        let message = text(Role::User, &format!("{number}"), 1);
        Record::Message(&message).write(&mut whole).unwrap();
        ends.push(whole.len());
    }
    for cut in 0..=whole.len() {
        test.write(&whole[..cut]);
        // A record is complete with or without its newline.
        let kept = ends.iter().filter(|end| **end > 0 && **end <= cut + 1).count();
        let mut log = test.open();
        append(&mut log, &[text(Role::User, "x", 1)]);
        append(&mut log, &[text(Role::User, "y", 1)]);
        drop(log);
        let bytes = fs::read_to_string(test.path()).unwrap();
        let contents: Vec<String> =
            bytes.lines().map(|line| serde_json::from_str::<Message>(line).unwrap().content).collect();
        let mut expected: Vec<String> = (0..kept).map(|number| number.to_string()).collect();
        expected.extend(["x".to_owned(), "y".to_owned()]);
        assert_eq!(contents, expected, "cut at {cut}");
        let torn = cut > ends[kept];
        assert_eq!(test.files().len(), 1 + usize::from(torn), "cut at {cut}");
        for name in test.files() {
            fs::remove_file(test.home.sessions().join(name)).unwrap();
        }
    }
}

#[test]
fn eight_processes_write_2400_whole_lines() {
    let test = TestSessions::new();
    let mut children: Vec<_> = (0..8)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "sessions::tests::append::child_that_appends", "--quiet"])
                .env("KONTEKST_TEST_HOME", test.home.root())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let transcript = test.sessions.transcript(&test.id).unwrap();
    assert_eq!((transcript.messages.len(), transcript.damaged.len()), (2400, 0));
    assert_eq!(test.files().len(), 1);
}

/// The test above starts this in another process. It does nothing when it runs by itself.
#[test]
fn child_that_appends() {
    let Some(root) = std::env::var_os("KONTEKST_TEST_HOME") else { return };
    let home = Home::find(Some(root.into())).unwrap();
    let sessions = Sessions::new(&home);
    let id = "s".parse().unwrap();
    let message = text(Role::User, &"x".repeat(700), 1);
    let mut left = 300;
    while left > 0 {
        match sessions.open(&id) {
            Ok(mut log) => {
                append(&mut log, std::slice::from_ref(&message));
                left -= 1;
            }
            Err(SessionError::Busy(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_full_disk_leaves_whole_records_and_a_usable_log() {
    let test = TestSessions::new();
    test.open();
    // The shell ignores SIGXFSZ for the child and limits files to 8 or 16 KiB, depending on the shell.
    let status = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "sessions::tests::append::child_with_a_full_disk", "--quiet"])
        .env("KONTEKST_TEST_HOME", test.home.root())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let mut log = test.open();
    append(&mut log, &[text(Role::User, "there is space again", 1)]);
    let transcript = test.sessions.transcript(&test.id).unwrap();
    assert!(transcript.messages.len() > 1, "the child wrote nothing");
    assert_eq!(transcript.damaged, Vec::<u64>::new());
    assert_eq!(test.files().len(), 1, "nothing was torn");
}

/// The test above starts this in another process. It does nothing when it runs by itself.
#[test]
fn child_with_a_full_disk() {
    let Some(root) = std::env::var_os("KONTEKST_TEST_HOME") else { return };
    let home = Home::find(Some(root.into())).unwrap();
    let mut log = Sessions::new(&home).open(&"s".parse().unwrap()).unwrap();
    let message = text(Role::User, &"x".repeat(3000), 1);
    let error = loop {
        if let Err(error) = log.append(&[Record::Message(&message), Record::Message(&message)]) {
            break error;
        }
    };
    assert!(matches!(error, SessionError::Append { .. }), "{error}");
    append(&mut log, &[text(Role::User, "small", 1)]);
    let tail = log.tail(1000, &bytes_by_four).unwrap();
    assert_eq!((tail.damaged, tail.messages.last().unwrap().content.as_str()), (0, "small"));
}

#[test]
fn nothing_is_written_if_one_record_is_too_long() {
    let test = TestSessions::new();
    let mut log = test.open();
    let huge = text(Role::User, &"x".repeat(MAX_LINE + 1), 1);
    let small = text(Role::User, "a", 1);
    let error = log.append(&[Record::Message(&small), Record::Message(&huge)]).unwrap_err();
    assert!(matches!(error, SessionError::TooLong { .. }), "{error}");
    append(&mut log, &[small]);
    assert_eq!(test.sessions.transcript(&test.id).unwrap().messages.len(), 1);
}
