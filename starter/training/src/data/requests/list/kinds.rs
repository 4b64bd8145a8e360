//! Files of a kind, by their ending or their name.

use super::super::quoted;
use crate::data::{Draw, grammar::filled};

/// The names that people give to files of a kind.
const KINDS: &[(&str, &[&str])] = &[
    (
        "rs",
        &[
            "rust files",
            "rust sources",
            "rust source files",
            "rust code",
            "rust code files",
            "rust modules",
            "Rust files",
            "rust programs",
        ],
    ),
    (
        "py",
        &[
            "python files",
            "python scripts",
            "python sources",
            "python modules",
            "python programs",
            "Python files",
            "python code files",
            "python source files",
        ],
    ),
    (
        "md",
        &[
            "markdown files",
            "markdown documents",
            "markdown docs",
            "Markdown files",
            "markdown notes",
            "markdown pages",
            "markdowns",
            "markdown texts",
        ],
    ),
    (
        "js",
        &[
            "javascript files",
            "javascript sources",
            "JavaScript files",
            "javascripts",
            "javascript code files",
            "javascript modules",
        ],
    ),
    (
        "ts",
        &[
            "typescript files",
            "typescript sources",
            "TypeScript files",
            "typescript modules",
            "typescript code files",
        ],
    ),
    ("json", &["json files", "JSON files", "json documents", "jsons", "json data files"]),
    ("toml", &["toml files", "TOML files", "toml configs", "toml documents", "tomls"]),
    ("yaml", &["yaml files", "YAML files", "yaml documents", "yaml configs", "yamls"]),
    ("yml", &["yml files", "YML files", "yml configs", "ymls"]),
    (
        "txt",
        &[
            "text files",
            "plain text files",
            "txt files",
            "text documents",
            "texts",
            "TXT files",
            "txt documents",
            "Text files",
        ],
    ),
    (
        "html",
        &["html files", "HTML files", "html pages", "html documents", "HTML pages", "web pages in html"],
    ),
    ("css", &["css files", "CSS files", "stylesheets", "style sheets", "css stylesheets"]),
    (
        "sh",
        &[
            "shell scripts",
            "shell files",
            "bash scripts",
            "sh scripts",
            "sh files",
            "Shell scripts",
            "shell programs",
        ],
    ),
    (
        "c",
        &["c files", "C files", "c sources", "C sources", "c source files", "C source files", "c programs"],
    ),
    ("go", &["go files", "Go files", "go sources", "golang files", "go source files", "Go sources"]),
    (
        "java",
        &["java files", "Java files", "java sources", "java source files", "java classes", "Java sources"],
    ),
    ("csv", &["csv files", "CSV files", "csv tables", "csvs", "CSVs", "csv data", "csv data files"]),
    ("log", &["log files", "logs", "logfiles", "Log files", "log file names"]),
    ("h", &["header files", "c headers", "headers", "C headers"]),
    ("cpp", &["c++ files", "C++ files", "cpp files", "c++ sources"]),
    ("rb", &["ruby files", "ruby scripts", "Ruby files"]),
    ("xml", &["xml files", "XML files", "xml documents"]),
    ("sql", &["sql files", "SQL files", "sql scripts"]),
    ("php", &["php files", "PHP files", "php scripts"]),
    ("lua", &["lua files", "lua scripts", "Lua files"]),
    ("kt", &["kotlin files", "Kotlin files"]),
    ("swift", &["swift files", "Swift files"]),
    ("pdf", &["pdf files", "PDFs", "pdfs", "PDF files", "pdf documents"]),
    ("png", &["png files", "PNG files", "pngs", "png images", "PNGs"]),
    ("jpg", &["jpg files", "jpgs", "jpg images", "JPG files"]),
    ("svg", &["svg files", "svgs", "SVG files", "svg images"]),
    ("proto", &["proto files", "protobuf files"]),
    ("ini", &["ini files"]),
    ("zip", &["zip files", "zip archives", "zips"]),
    ("lock", &["lock files", "lockfiles"]),
    ("env", &["env files"]),
    ("bak", &["bak files", "backup files ending in .bak"]),
    ("jsx", &["jsx files"]),
    ("tsx", &["tsx files"]),
];

/// The files that are listed, and their pattern.
pub fn kind(draw: &mut Draw) -> (String, String) {
    let end = draw.extension();
    match draw.between(0, 99) {
        0..52 => {
            // Those that come first in the table come more often.
            let top = draw.pick(&[18, 18, KINDS.len()]);
            let (end, names) = KINDS[draw.rng.usize(0..top)];
            (draw.pick(names).to_owned(), format!("*.{end}"))
        }
        52..75 => {
            let how = draw.pick(&[
                ".{e} files",
                "*.{e} files",
                "{e} files",
                "*.{e}",
                ".{e} files",
                "files ending in .{e}",
                "files with the extension {e}",
                "files with extension .{e}",
                "files ending with .{e}",
                "files that end in .{e}",
                "files of type {e}",
                "files with a .{e} extension",
                "files whose name ends in .{e}",
                ".{e}s",
                "{e} documents",
                ".{e} documents",
                "files with the suffix .{e}",
                "files named *.{e}",
                "files that end with .{e}",
                "{e}-files",
            ]);
            (filled(how, &[("e", &end)]), format!("*.{end}"))
        }
        75..84 => {
            let stem = draw.stem();
            let shown = part(draw, &stem);
            let how = draw.pick(&[
                "files starting with {s}",
                "files that start with {s}",
                "files beginning with {s}",
                "files whose name starts with {s}",
                "files with names starting with {s}",
                "files that begin with {s}",
                "files with the prefix {s}",
                "documents starting with {s}",
                "files whose names begin with {s}",
            ]);
            (filled(how, &[("s", &shown)]), format!("{stem}*"))
        }
        84..93 => {
            let stem = draw.stem();
            let shown = part(draw, &stem);
            let how = draw.pick(&[
                "files with {s} in the name",
                "files with {s} in their name",
                "files containing {s} in their name",
                "files whose name contains {s}",
                "files whose names contain {s}",
                "files that have {s} in their name",
                "files with {s} in their names",
                "files with a name containing {s}",
            ]);
            (filled(how, &[("s", &shown)]), format!("*{stem}*"))
        }
        _ => {
            let tail = format!("{}{}.{end}", draw.pick(&["_", "-", "."]), draw.word());
            let shown = part(draw, &tail);
            let how = draw.pick(&[
                "files ending in {s}",
                "files that end in {s}",
                "files that end with {s}",
                "files ending with {s}",
                "files whose name ends in {s}",
                "files whose name ends with {s}",
            ]);
            (filled(how, &[("s", &shown)]), format!("*{tail}"))
        }
    }
}

/// Part of a name as it is put into a request: bare, or in quotes.
fn part(draw: &mut Draw, part: &str) -> String {
    if draw.chance(30) { quoted(draw, part) } else { part.to_owned() }
}
