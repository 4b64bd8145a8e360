//! Requests to list files.

mod kinds;
mod phrasings;

use kinds::kind;
use phrasings::{
    BELOW, DIRECTORIES, ENDING, EXISTS, FILES, GLOB, HERE, IN_DIRECTORY, KNOWN, MARKED, OF_A_KIND,
    PLACE_FIRST, WHERE,
};

use super::{Request, call, named};
use crate::data::{
    Call, Draw,
    grammar::{expand, filled},
};

pub fn request(draw: &mut Draw) -> Request {
    match draw.between(0, 99) {
        0..15 => {
            let text = HERE.draw(draw);
            call("list", filled(&text, &[]), Call::list("*"))
        }
        15..33 => in_directory(draw),
        33..75 => of_kind(draw),
        75..80 => everything_below(draw),
        80..84 => directories(draw),
        84..88 => by_name(draw),
        88..92 => exists(draw),
        _ => glob(draw),
    }
}

fn within(directory: &str, pattern: &str) -> String {
    format!("{}/{pattern}", directory.trim_end_matches('/'))
}

fn in_directory(draw: &mut Draw) -> Request {
    if draw.chance(5) {
        let (words, pattern) = draw.pick(&[
            ("the parent directory", "../*"),
            ("the directory above", "../*"),
            ("..", "../*"),
            ("the parent folder", "../*"),
            ("my home directory", "~/*"),
            ("~", "~/*"),
            ("the folder above this one", "../*"),
            ("my home folder", "~/*"),
            ("/", "/*"),
        ]);
        let text = draw.pick(&[
            "list {d}",
            "what files are in {d}?",
            "show me the files in {d}",
            "ls {d}",
            "what is in {d}?",
            "list everything in {d}",
            "list the contents of {d}",
        ]);
        return call("list", filled(text, &[("d", words)]), Call::list(pattern));
    }
    if let Some(known) = draw.known_directory()
        && draw.chance(60)
    {
        // Everybody knows that these are directories.
        let text = KNOWN.draw(draw);
        return call("list", filled(&text, &[("d", known)]), Call::list(within(known, "*")));
    }
    let directory = draw.directory();
    let d = named(draw, &directory);
    // A slash inside quotes would be part of the name.
    let marked = expand(draw, MARKED);
    let mut text = IN_DIRECTORY.draw(draw).replace('%', &marked);
    if d != directory {
        text = text.replace("{d}/", "{d}");
    }
    let text = filled(&text, &[("d", &d)]);
    call("list", text, Call::list(within(&directory, "*")))
}

/// Draws a place with a space before it. Returns it with the pattern that it makes of another one.
fn place(draw: &mut Draw, pattern: &str) -> (String, String) {
    let phrase = |draw: &mut Draw, text: &str| expand(draw, text).replace(" ,", ",");
    let directory = draw.directory();
    let d = named(draw, &directory);
    let there = |text: &str| {
        let text = if d == directory { text.to_owned() } else { text.replace("{d}/", "{d}") };
        filled(&text, &[("d", &d)])
    };
    match draw.between(0, 99) {
        0..24 => (String::new(), pattern.to_owned()),
        24..42 => (phrase(draw, " $H"), pattern.to_owned()),
        42..66 => (
            there(&phrase(draw, " [in|in|in|inside|under|within|from|of|below] $D")),
            within(&directory, pattern),
        ),
        66..88 => (phrase(draw, " $W"), format!("**/{pattern}")),
        88..96 => (
            there(&phrase(draw, " [in|in|inside|under|within|from|below] $D $W"))
                .replace("in this project and its subfolders", "and its subfolders")
                .replace("here and below", "and below"),
            within(&directory, &format!("**/{pattern}")),
        ),
        _ => (
            there(&phrase(
                draw,
                " [anywhere in|anywhere under|anywhere below|recursively in|in all subdirectories of|in all folders of|in every subfolder of|everywhere in|somewhere under|at any depth in|in the whole of|in all subfolders of] $D",
            )),
            within(&directory, &format!("**/{pattern}")),
        ),
    }
}

fn of_kind(draw: &mut Draw) -> Request {
    if draw.chance(9) {
        let end = draw.extension();
        let (place, pattern) = place(draw, &format!("*.{end}"));
        // In the middle of a sentence there is no aside.
        let place = place.replace([',', '(', ')'], "");
        let text = ENDING.draw(draw);
        return call("list", filled(&text, &[("e", &end), ("p", &place)]), Call::list(pattern));
    }
    let (kind, pattern) = kind(draw);
    let (place, pattern) = place(draw, &pattern);
    let first = place.trim_start();
    let may_be_first = ["in ", "inside ", "under ", "within ", "across ", "throughout "]
        .iter()
        .any(|word| first.starts_with(word));
    let phrasings = match draw.between(0, 99) {
        0..18 if may_be_first => PLACE_FIRST,
        18..24 if kind.split(' ').count() < 3 => OF_A_KIND,
        _ => FILES,
    };
    let text = phrasings.draw(draw);
    call("list", filled(&text, &[("k", &kind), ("p", &place), ("P", first)]), Call::list(pattern))
}

fn everything_below(draw: &mut Draw) -> Request {
    if draw.chance(25) {
        let text = draw.pick(BELOW);
        let here = draw.chance(40);
        let directory = draw.directory();
        let d = named(draw, &directory);
        let shell = text.starts_with("tree") || text.starts_with("ls");
        let below = match (here, shell) {
            (true, true) => draw.pick(&["", "", " ."]),
            (true, false) => draw.pick(&["", " here", " in this folder"]),
            (false, true) => " {d}",
            (false, false) => draw.pick(&[" under {d}", " in {d}", " below {d}", " in the {d} folder"]),
        };
        let text = expand(draw, text).replace('%', below).replace(" ,", ",");
        let pattern = if here { "**/*".to_owned() } else { within(&directory, "**/*") };
        return call("list", filled(&text, &[("d", &d)]), Call::list(pattern));
    }
    let (kind, pattern) = (draw.pick(&["files", "files", "files", "documents", "file names"]), "**/*");
    let mut text = FILES.draw(draw);
    text = text.replace("{p}", " {p}");
    if draw.chance(65) {
        let place = expand(draw, "$W");
        let text = filled(&text, &[("k", kind), ("p", &place)]).replace(" ,", ",");
        return call("list", text, Call::list(pattern));
    }
    let directory = draw.directory();
    let d = named(draw, &directory);
    let place = expand(
        draw,
        "[in {d} and all its subdirectories|in {d} and its subfolders|in {d} recursively|under {d} recursively|anywhere in {d}|anywhere under {d}|in {d} at any depth|recursively in {d}|in {d}, recursively|in {d} and below|in all subdirectories of {d}|in all folders of {d}]",
    );
    let place = filled(&place, &[("d", &d)]);
    call("list", filled(&text, &[("k", kind), ("p", &place)]), Call::list(within(&directory, pattern)))
}

fn directories(draw: &mut Draw) -> Request {
    let kind = draw.pick(&[
        "directories",
        "folders",
        "subdirectories",
        "subfolders",
        "directories",
        "folders",
        "dirs",
    ]);
    let text = if draw.chance(25) {
        let text = draw.pick(DIRECTORIES);
        expand(draw, text).replace('%', "{p}")
    } else {
        FILES.draw(draw)
    };
    if draw.chance(65) {
        let place = if draw.chance(60) { expand(draw, " $H") } else { String::new() };
        return call("list", filled(&text, &[("k", kind), ("p", &place)]), Call::list("*/"));
    }
    let directory = draw.directory();
    let d = named(draw, &directory);
    let place =
        expand(draw, " [in|inside|under|within] [{d}|the {d} directory|the {d} folder|the folder {d}]");
    let place = filled(&place, &[("d", &d)]);
    call("list", filled(&text, &[("k", kind), ("p", &place)]), Call::list(within(&directory, "*/")))
}

fn by_name(draw: &mut Draw) -> Request {
    let file = draw.file_name();
    let f = named(draw, &file);
    let text = WHERE.draw(draw).replace(" ,", ",");
    call("list", filled(&text, &[("f", &f)]), Call::list(format!("**/{file}")))
}

fn exists(draw: &mut Draw) -> Request {
    let file = draw.path();
    let f = named(draw, &file);
    call("list", filled(&EXISTS.draw(draw), &[("f", &f)]), Call::list(file))
}

fn glob(draw: &mut Draw) -> Request {
    let end = draw.extension();
    let stem = draw.stem();
    let name = match draw.between(0, 9) {
        0..3 => format!("*.{end}"),
        3 | 4 => format!("{stem}*"),
        5 => format!("{stem}*.{end}"),
        6 => format!("*{stem}*"),
        7 => format!("*_{stem}.{end}"),
        8 => format!("{stem}?.{end}"),
        _ => format!("*.{{{end},{}}}", draw.extension()),
    };
    let pattern = match draw.between(0, 9) {
        0..4 => name,
        4..8 => format!("{}/{name}", draw.directory()),
        8 => format!("**/{name}"),
        _ => format!("{}/**/{name}", draw.directory()),
    };
    let g = named(draw, &pattern);
    call("list", filled(&GLOB.draw(draw), &[("g", &g)]), Call::list(pattern))
}
