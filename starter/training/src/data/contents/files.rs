//! Whole files.

use crate::data::{Draw, draw::capital};

/// The lines of a file of some kind; `longest` of them or fewer.
pub fn lines_of_a_file(draw: &mut Draw, longest: u32) -> Vec<String> {
    let count = draw.small(1, longest);
    match draw.between(0, 9) {
        0 | 1 => code(draw, count),
        2 => lines_of_prose(draw, count),
        3 => markdown(draw, count),
        4 => settings(draw, count),
        5 => table(draw, count),
        6 => log(draw, count),
        7 => (0..count).map(|_| draw.long_sentence()).collect(),
        8 => (0..count).map(|_| if draw.chance(40) { draw.confusing() } else { draw.text() }).collect(),
        _ => (0..count).map(|_| draw.text()).collect(),
    }
}

/// Sentences, with an empty line here and there.
pub fn lines_of_prose(draw: &mut Draw, count: u32) -> Vec<String> {
    (0..count).map(|_| if draw.chance(15) { String::new() } else { draw.sentence(3, 14) }).collect()
}

fn code(draw: &mut Draw, count: u32) -> Vec<String> {
    let indent = draw.pick(&["    ", "  ", "\t", "    "]);
    let mut depth = 0;
    (0..count)
        .map(|_| {
            if draw.chance(12) {
                return String::new();
            }
            let line = draw.code();
            if line == "}" && depth > 0 {
                depth -= 1;
            }
            let text = format!("{}{line}", indent.repeat(depth));
            if line.ends_with(['{', ':']) && depth < 3 {
                depth += 1;
            }
            text
        })
        .collect()
}

fn markdown(draw: &mut Draw, count: u32) -> Vec<String> {
    let title = format!("# {}", capital(&draw.words(1, 4)));
    let mut lines = vec![title];
    while lines.len() < count as usize {
        lines.push(match draw.between(0, 9) {
            0 | 1 => String::new(),
            2 => format!("## {}", capital(&draw.words(1, 3))),
            3 | 4 => format!("- {}", draw.words(1, 6)),
            5 => format!("[{}]({})", draw.words(1, 3), draw.url()),
            6 => format!("`{}`", draw.code()),
            7 => format!("**{}**: {}", capital(&draw.word()), draw.words(1, 6)),
            _ => draw.sentence(3, 12),
        });
    }
    lines
}

fn settings(draw: &mut Draw, count: u32) -> Vec<String> {
    let (assign, section) =
        draw.pick(&[(" = ", true), ("=", true), (": ", false), ("=", false), ("\": \"", false)]);
    (0..count)
        .map(|_| {
            if section && draw.chance(15) {
                return format!("[{}]", draw.stem());
            }
            let value = if draw.chance(40) { format!("\"{}\"", draw.words(1, 3)) } else { draw.value() };
            match assign {
                "\": \"" => format!("  \"{}\": {value},", draw.word()),
                _ => format!("{}{assign}{value}", draw.stem()),
            }
        })
        .collect()
}

fn table(draw: &mut Draw, count: u32) -> Vec<String> {
    let comma = draw.pick(&[",", ",", ";", "\t"]);
    let columns = draw.between(2, 5);
    (0..count)
        .map(|number| {
            let cells: Vec<String> =
                (0..columns).map(|_| if number == 0 { draw.word() } else { draw.value() }).collect();
            cells.join(comma)
        })
        .collect()
}

fn log(draw: &mut Draw, count: u32) -> Vec<String> {
    let day = format!("{}-{:02}-{:02}", draw.between(2015, 2030), draw.between(1, 12), draw.between(1, 28));
    (0..count)
        .map(|_| {
            let (hour, minute, second) = (draw.between(0, 23), draw.between(0, 59), draw.between(0, 59));
            let level = draw.pick(&["INFO", "WARN", "ERROR", "DEBUG", "[info]", "error:", "TRACE"]);
            format!("{day} {hour:02}:{minute:02}:{second:02} {level} {}", draw.words(1, 7))
        })
        .collect()
}
