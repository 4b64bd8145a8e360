//! Bytes and escape sequences that are no text, typed and pasted.

use super::{PROMPT, exchange, leave, user_texts};
use crate::{fake_llama::Reply, test_home::TestHome};

/// Types each of `typed` in a chat, and compares the prompts that the model reads.
#[track_caller]
fn check(term: &str, cases: &[(&[u8], &str)]) {
    let (model, home) = TestHome::with_model(cases.iter().map(|_| Reply::text("ok")));
    let mut chat = home.on_terminal_with(&["chat"], 80, &[("NO_COLOR", "1"), ("TERM", term)]);
    chat.wait_for("/help");
    chat.wait_for(PROMPT);
    for (typed, _) in cases {
        chat.type_bytes(typed);
        exchange(&mut chat, if term == "dumb" { "\n" } else { "\r" }, "ok");
    }
    let screen = leave(chat);
    let prompts: Vec<String> = user_texts(model.chats().last().unwrap());
    let expected: Vec<&str> = cases.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(prompts, expected, "{screen}");
}

#[test]
fn a_byte_that_is_no_character_leaves_the_line() {
    let cases: [(&[u8], &str); 4] = [
        (b"caf\xe9 au lait", "caf\u{fffd} au lait"),
        (b"a\x9b b", "a\u{fffd} b"),
        (b"hello \x00 world", "hello  world"),
        (b"\x00\x00x", "x"),
    ];
    check("xterm", &cases);
}

#[test]
fn a_pasted_text_loses_its_colours_and_nothing_else() {
    let cases: [(&[u8], &str); 3] = [
        (
            b"\x1b[200~\x1b[1;31merror[E0308]\x1b[0m: a\xe9\r\n \x1b]0;t\x07b\x1b(Bc\x1b[201~",
            "error[E0308]: a\u{fffd}\n bc",
        ),
        (b"x\x1b[200~y\x00\x03z\x1b[201~ w", "xyz w"),
        ("\x1b[200~a\u{9b}31mb\u{202e}c\x1b[201~".as_bytes(), "ab\u{202e}c"),
    ];
    check("xterm", &cases);
}

#[test]
fn the_same_holds_on_a_terminal_without_a_cursor() {
    let cases: [(&[u8], &str); 3] =
        [(b"caf\xe9", "caf\u{fffd}"), (b"\x1b[31mred\x1b[0m", "red"), (b"one\\\ntwo", "one\ntwo")];
    check("dumb", &cases);
}
