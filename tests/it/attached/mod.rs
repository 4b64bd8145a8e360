//! `--file` with images and PDF files.

use std::fs;

use serde_json::{Value, json};

use crate::{
    fake_llama::{FakeLlama, Reply, Setup},
    test_home::{Output, TestHome},
};

const GIF: &[u8] = b"GIF89a";

/// `GIF` as a part of a message.
fn gif_part() -> Value {
    json!({"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlh"}})
}

fn server(vision: Option<bool>, replies: impl IntoIterator<Item = Reply>) -> FakeLlama {
    FakeLlama::with(Setup { vision, ..Setup::default() }, replies)
}

/// Returns the names of the files of images.
fn image_files(home: &TestHome) -> Vec<String> {
    let names = fs::read_dir(home.root().join("sessions")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".image-")).collect()
}

#[test]
fn an_image_reaches_a_model_that_sees_and_stays_in_the_conversation() {
    let model = server(Some(true), [Reply::text("a cat"), Reply::text("black"), Reply::text("a copy")]);
    let home = TestHome::new(&model.url());
    fs::write(home.work_dir().join("cat.gif"), GIF).unwrap();
    home.run(&["run", "--session", "s", "-f", "cat.gif", "what is it?"]).success();
    fs::remove_file(home.work_dir().join("cat.gif")).unwrap();
    home.run(&["run", "--session", "s", "which colour?"]).success();
    let chats = model.chats();
    let prompt = json!([gif_part(), {"type": "text", "text": "<image name=\"cat.gif\" />\n\nwhat is it?"}]);
    for chat in &chats {
        let first = chat["messages"].as_array().unwrap().iter().find(|message| message["role"] == "user");
        assert_eq!(first.unwrap()["content"], prompt, "the same bytes in each request");
    }
    let stored = home.read("sessions/s.jsonl");
    assert!(!stored.contains("R0lGOD") && stored.contains(r#""media_type":"image/gif""#), "{stored}");
    assert_eq!(image_files(&home).len(), 1);

    home.run(&["sessions", "fork", "s"]).success();
    home.run(&["sessions", "delete", "s"]).success();
    assert_eq!(image_files(&home).len(), 1, "that of the copy");
    home.run(&["run", "and now?"]).success();
    assert!(model.chats()[2].to_string().contains("R0lGODlh"));
}

#[test]
fn a_model_that_does_not_see_is_not_asked() {
    let model = server(Some(false), [Reply::text("hello")]);
    let home = TestHome::new(&model.url());
    fs::write(home.work_dir().join("cat.gif"), GIF).unwrap();
    let stderr = home.run(&["run", "-f", "cat.gif", "what is it?"]).fails(2);
    assert!(stderr.contains("takes no images, and the prompt has one: cat.gif"), "{stderr}");
    assert!(stderr.contains("--model"), "{stderr}");
    assert!(model.chats().is_empty());
    home.run(&["run", "hello"]).success();
}

#[test]
fn a_server_that_does_not_say_is_sent_the_image() {
    let model = server(None, [Reply::text("a cat")]);
    let home = TestHome::new(&model.url());
    fs::write(home.work_dir().join("cat.gif"), GIF).unwrap();
    home.run(&["run", "-f", "cat.gif"]).success();
}

#[test]
fn a_model_that_does_not_see_reads_that_there_was_an_image() {
    let model = server(None, [Reply::text("a cat"), Reply::text("which?")]);
    let home = TestHome::new(&model.url());
    fs::write(home.work_dir().join("cat.gif"), GIF).unwrap();
    home.run(&["run", "-f", "cat.gif", "what is it?"]).success();
    fs::remove_file(home.root().join("sessions").join(image_files(&home).pop().unwrap())).unwrap();
    home.run(&["run", "-c", "and now?"]).success();
    let chat = model.chats().pop().unwrap().to_string();
    assert!(chat.contains("[you cannot see these images: cat.gif]") && !chat.contains("image_url"), "{chat}");
}

#[cfg(feature = "builtin")]
#[test]
fn the_built_in_model_does_not_see() {
    let home = TestHome::with_config("provider = \"builtin\"\nbind = \"off\"\n");
    fs::write(home.work_dir().join("cat.gif"), GIF).unwrap();
    let stderr = home.run(&["run", "-f", "cat.gif", "what is it?"]).fails(2);
    assert!(stderr.contains("takes no images"), "{stderr}");
}

#[test]
fn images_that_no_client_may_send_are_refused() {
    let home = TestHome::new("http://127.0.0.1:1");
    fs::write(home.work_dir().join("a.gif"), GIF).unwrap();
    let many: Vec<&str> = std::iter::repeat_n(["-f", "a.gif"], 17).flatten().collect();
    let stderr = home.run(&[&["run"][..], &many, &["hi"]].concat()).fails(2);
    assert!(stderr.contains("a prompt may have 16 images"), "{stderr}");
}

/// The directory with the stand-in for pdftotext.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/attached");

/// Runs `kontekst run -f x.pdf` on a file with this content, with a program in this directory or without any.
fn run_pdf(home: &TestHome, content: &str, programs: Option<&str>) -> Output {
    fs::write(home.work_dir().join("x.pdf"), format!("%PDF-1.7\n\0\n{content}\n")).unwrap();
    let path = programs.map_or("/nowhere".to_owned(), |dir| format!("{dir}:/usr/bin:/bin"));
    let mut command = home.command(&["run", "--new", "-f", "x.pdf", "what is this?"]);
    command.env("PATH", path);
    crate::test_home::wait_with_output(command.spawn().unwrap())
}

#[test]
fn the_text_of_a_pdf_file_is_sent() {
    let (model, home) = TestHome::with_model([Reply::text("a letter")]);
    run_pdf(&home, "text:Dear Ada|page two", Some(PROGRAMS)).success();
    let chat = model.chats()[0].to_string();
    assert!(
        chat.contains(r#"<file name=\"x.pdf\">\nDear Ada\n\npage two\n</file>\n\nwhat is this?"#),
        "{chat}"
    );
}

#[test]
fn a_pdf_file_that_cannot_be_read_is_an_error_that_says_why() {
    let home = TestHome::new("http://127.0.0.1:1");
    let stderr = run_pdf(&home, "text:never read", None).fails(2);
    assert!(stderr.contains("pdftotext, which reads it, is not installed"), "{stderr}");
    for (content, expect) in [
        ("please fail", "pdftotext cannot read `x.pdf`"),
        ("please flood", "the text of `x.pdf` is larger than 32 MiB"),
        ("no text at all", "has no text, it is probably a scan"),
    ] {
        let stderr = run_pdf(&home, content, Some(PROGRAMS)).fails(2);
        assert!(stderr.contains(expect), "{content}: {stderr}");
    }
}

#[test]
fn an_image_stays_with_a_run_that_is_parked() {
    let call = Reply::calls([("write_file", json!({"path": "cat.txt", "content": "a cat"}))]);
    let model = server(Some(true), [call, Reply::text("It is a cat.")]);
    let home = TestHome::new(&model.url());
    fs::write(home.work_dir().join("cat.gif"), GIF).unwrap();
    home.run(&["run", "-f", "cat.gif", "write down what it is"]).fails(3);
    fs::remove_file(home.work_dir().join("cat.gif")).unwrap();
    home.run(&["daemon", "restart"]).success();
    assert_eq!(home.run(&["approvals", "approve", "--all"]).success(), "It is a cat.\n");
    let chats = model.chats();
    let prompt = |chat: &Value| {
        let messages = chat["messages"].as_array().unwrap();
        messages.iter().find(|message| message["role"] == "user").unwrap()["content"].clone()
    };
    assert_eq!(prompt(&chats[1]), prompt(&chats[0]));
    assert_eq!(prompt(&chats[1])[0], gif_part());
    assert_eq!(image_files(&home).len(), 1);
}
