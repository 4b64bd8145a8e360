//! Requests to list files.

use super::{Request, call, named, quoted};
use crate::data::{
    Call, Draw,
    grammar::{Phrasings, filled},
};

/// `{k}` is what is listed, as in `python files`; `{p}` where, with a space before it.
const FILES: Phrasings = Phrasings {
    commands: &[
        "$L [|the |all |all the |all |every one of the |my |our |any ][|existing |available |]{k}{p}",
        "$L {k}{p}",
        "$L all {k}{p}",
        "$L the {k}{p}",
        "[show me|tell me|find out|see|check|let me know|let me see] [which|what] {k} [there are|we have|i have|exist|you can see|you can find|are there|are present]{p}",
        "[tell me|show me|let me see|let me know] [which|what] {k} are{p}",
        "[tell me|let me know|find out|check] if there are [any |]{k}{p}",
        "[use|call|run] [the tool |]list_files [to find|for|to get|to list] {k}{p}",
        "find me all [of |]the {k}{p}",
        "look for {k}{p}",
        "list out every single one of the {k}{p}",
        "show me a listing of {k}{p}",
        "give me the names of [all |the |all the |]{k}{p}",
        "print the names of [all |the |all the |]{k}{p}",
        "look{p} and list [the |all |]{k}",
        "take a look{p} and tell me which {k} there are",
        "count the {k}{p} by listing them",
        "go through the {k}{p} and list them",
        "check which {k} exist{p}",
    ],
    questions: &[
        "[which|what] {k} [are there|do we have|do i have|exist|can you see|can you find|are|are available|are present|have we got|do you see|is there|live|are stored]{p}",
        "what {k} are{p}",
        "are there [any |some |]{k}{p}",
        "do [we|i|you] have [any |some |]{k}{p}",
        "where are [the |all the |my |our ]{k}{p}",
        "[what's|what are] the {k}{p}",
        "is there any of the {k}{p}",
        "how many {k} are there{p}",
        "can i see [the |all |all the |]{k}{p}",
        "can you see [any |the |]{k}{p}",
        "could i get a list of [the |all |]{k}{p}",
        "which are the {k}{p}",
        "may i see the {k}{p}",
        "do any {k} exist{p}",
    ],
    statements: &[
        "[i want|i need|i'd like|i would like|we need] [to see|a list of|to know|the names of|to have a list of] [the |all |all the |every |my |]{k}{p}",
        "{k}{p}",
        "all {k}{p}",
        "[the |]list of [the |all |all the |]{k}{p}",
        "{k}{p} please",
        "names of [all |the |]{k}{p}",
        "[which|what] {k}{p}?",
        "[i am|i'm] looking for [the |all |]{k}{p}",
        "any {k}{p}?",
        "there must be some {k}{p}. [List them.|Show me.|Where are they?]",
        "i wonder which {k} there are{p}",
        "looking for {k}{p}",
        "ls the {k}{p}",
        "[i lost|i can't find|i forgot] my {k}{p}[, can you list them?|. List them.|, show them|. Where are they?]",
    ],
};
/// Everything that is here.
const HERE: Phrasings = Phrasings {
    commands: &[
        "$L [the |all |all the |every |my |][files|files|file names|documents|everything|stuff] $H",
        "$L [the |all |all the |my |][files|files|files|filenames]",
        "$L [what's|what is|whatever is] $H",
        "[show me|tell me|let me see|check|see|find out|let me know] what [files are|is|we have|i have|there is|you see|you can see|is there|files there are] $H",
        "list everything",
        "list everything $H",
        "list all [files|the files|of the files]",
        "list the contents of [this directory|this folder|the current directory|the current folder|the working directory|the project|the repo|my project|.]",
        "[list|show|print|display] [the contents of |]the [current|working|present] [directory|folder|dir]",
        "[show me|show|list] this [directory|folder]['s contents||'s files]",
        "look around $H",
        "look around and tell me what you see",
        "[take|have] a look $H",
        "list files",
        "show files",
        "see what files we have",
        "give me [a directory listing|a file listing|a listing of this directory|a list of files|an overview of the files $H|a file list]",
        "run ls",
        "do an ls",
        "scan [this directory|the current folder|this folder]",
        "print a directory listing",
        "[show|give] me a directory listing",
        "browse this [folder|directory]",
    ],
    questions: &[
        "what files are $H",
        "what is $H",
        "what's $H",
        "whats $H",
        "which files are $H",
        "what files are there",
        "which files are there",
        "which files [do we have|do i have|can you see|exist] $H",
        "what [do we have|have we got|do you see|can you see|can you find] $H",
        "what does [this directory|this folder|the current directory|my project|this project|the repo] contain",
        "what [is in|is inside|files are in|files does] [this folder|this directory|the current directory|the working directory|here]",
        "are there any files $H",
        "is there anything $H",
        "how many files are $H",
        "how many files are there $H",
        "what's lying around $H",
        "what documents are $H",
        "which documents do i have $H",
        "where are my files",
    ],
    statements: &[
        "ls",
        "ls",
        "ls -la",
        "ls -l",
        "dir",
        "ls .",
        "ls -a",
        "files?",
        "files",
        "the files $H",
        "[i want|i need|i'd like] [to see|to know] [the files|all files|all the files|what is|what's|everything|what files are] $H",
        "list files please",
        "file list",
        "directory listing",
        "everything $H",
        "all files $H",
        "contents of [this directory|this folder|the current directory|the working directory]",
        "i wonder what is $H",
        "[i don't know|i forgot] what is $H[, please list it|. Show me.|. List the files.]",
        "i'd like an overview of the files $H",
        "list_files",
        "which files?",
        "what files?",
    ],
};
/// Everything in a directory.
const IN_DIRECTORY: Phrasings = Phrasings {
    commands: &[
        "$L [the |all |all the |every |my |][files|files|files|file names|documents|everything|stuff|things|contents|names] [in|in|in|inside|under|within|from|of] $D",
        "$L [what's|what is|whatever is|what files are|which files are] [in|inside|under] $D",
        "[list|show|print|display|list|browse|explore|scan|look into|look in|look inside|check|open] [the {d} directory|the {d} folder|the directory {d}|the folder {d}|{d}/|my {d} folder|the {d} dir]",
        "[show me|tell me|let me see|check|see|find out] what [files are|is|we have|there is|you see|is there|files there are|i have] [in|inside|under] $D",
        "list {d}",
        "list {d}/",
        "list the contents of $D",
        "[show|print|give me|display] the contents of [the {d} directory|the {d} folder|{d}/|the directory {d}|the folder {d}]",
        "[take|have] a look [in|inside|into] $D",
        "go [into|to] $D and list [the files|everything|what's there|its files]",
        "[in|inside] $D[,|] [list|show] [all |the |][files|everything]",
        "list all files from $D",
        "give me [a listing|an overview|a list|a directory listing] of $D",
        "tell me which files $D [has|contains|holds]",
        "do an ls [in|on|of] {d}",
        "look what is in $D",
    ],
    questions: &[
        "[what|which] files are [in|inside|under|within] $D",
        "[what's|what is|whats] [in|inside|under] [the {d} directory|the {d} folder|the directory {d}|the folder {d}|{d}/|my {d} folder|the {d} dir]",
        "[what|which] files does $D [contain|have|hold]",
        "[what|which] files [do we have|are there|do i have|can you see|exist] [in|inside|under] $D",
        "what does [the {d} directory|the {d} folder|the directory {d}|the folder {d}|{d}/] contain",
        "are there [any |]files in $D",
        "is there anything in $D",
        "how many files are [there |]in $D",
        "is $D empty",
        "what do we have in $D",
        "what's there in $D",
        "what is stored in $D",
        "what have we got in $D",
    ],
    statements: &[
        "ls {d}",
        "ls {d}",
        "ls {d}/",
        "dir {d}",
        "ls -l {d}",
        "ls -la {d}/",
        "files in $D",
        "the files [in|under|of] $D",
        "contents of [the {d} directory|the {d} folder|{d}/]",
        "{d}/",
        "{d}/?",
        "[i want|i need|i'd like] [to see|to know] [the files|all files|what is|what's|everything|what files are] [in|inside] $D",
        "everything [in|under] $D",
        "{d}: [list it|list the files|which files are there?|list all files]",
        "there is a [folder|directory] {d}. [List it.|What is in it?|Which files are there?]",
        "there's a folder called {d}, [list it|what's in it?|which files does it have?]",
    ],
};
/// A directory that has the usual name of one.
const KNOWN: Phrasings = Phrasings {
    commands: &[
        "$L [what's|what is|whatever is] [in|inside|under] {d}",
        "[show|open|browse|explore|look in|look into|look inside|check|scan|display] {d}",
        "[show me|tell me|see|check] what [is|files are|we have|'s] [in|inside|under] {d}",
        "have a look [in|inside|at|into] {d}",
        "give me {d}",
    ],
    questions: &[
        "what's in {d}",
        "what is in {d}",
        "whats in {d}",
        "what is inside {d}",
        "what does {d} contain",
        "what do we have in {d}",
        "is there anything in {d}",
    ],
    statements: &["{d}?", "contents of {d}", "what about {d}", "what's in {d}?", "ls {d}"],
};
/// One file by its name.
const WHERE: Phrasings = Phrasings {
    commands: &[
        "[find|locate|search for|look for] [the file |a file named |a file called |files named |files called |all files named |]{f} $W",
        "find out where {f} is",
        "[tell me|show me|find out] where {f} is",
        "locate {f}",
        "find {f}",
        "search the [project|repo|tree] for {f}",
        "search for a file [called|named] {f}",
    ],
    questions: &[
        "where is {f}",
        "where's {f}",
        "where is the file {f}",
        "in which [directory|folder] is {f}",
        "where can i find {f}",
        "where did i put {f}",
        "where do we have {f}",
        "is there a file [named|called] {f} $W",
        "is {f} anywhere",
    ],
    statements: &[
        "find . -name {f}",
        "where {f}?",
        "i can't find {f}[, where is it?|. Where is it?|, please find it]",
        "i lost {f}[, where is it?|. Find it.|, can you locate it?]",
    ],
};
const EXISTS: Phrasings = Phrasings {
    commands: &[
        "[check|see|tell me|find out|let me know|look] [if|whether] [the file |]{f} [exists|is there|is here|is present]",
        "check for {f}",
        "[check|see|tell me] if there is a {f} $H",
    ],
    questions: &[
        "does {f} exist",
        "is there a {f} $H",
        "is there a file [called|named] {f} $H",
        "do we have a {f}",
        "does the file {f} exist",
        "is {f} here",
        "is {f} there",
        "do i have a {f} $H",
        "does a file named {f} exist $H",
    ],
    statements: &["is {f} there?", "ls {f}", "i wonder if {f} exists"],
};
/// A pattern that was written as one.
const GLOB: Phrasings = Phrasings {
    commands: &[
        "$L [|the |all |all the |every ]{g}",
        "$L [|the |all |all the |every |]{g} files",
        "$L [|the |all |all the |][files|everything|names|files] [matching|that match|like|matching the pattern|matching the glob|of the form|for the pattern|with the pattern] {g}",
        "[use|call|run] list_files [with|for|on] [the pattern |]{g}",
        "glob {g}",
    ],
    questions: &[
        "[what|which] files match {g}",
        "[what|which] files match the pattern {g}",
        "are there [any |]{g} files",
        "what does {g} match",
        "[which|what] {g} [files |][are there|do we have|exist]",
        "how many files match {g}",
    ],
    statements: &[
        "ls {g}",
        "ls {g}",
        "ls -l {g}",
        "dir {g}",
        "{g}",
        "files matching {g}",
        "everything [that matches|matching] {g}",
        "pattern {g}",
        "all {g} files",
        "[i want|i need|i'd like] [to see |a list of |][all |the |]{g}",
    ],
};

/// How people call files of a kind.
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
    let mut text = IN_DIRECTORY.draw(draw);
    if d != directory {
        text = text.replace("{d}/", "{d}");
    }
    let text = filled(&text, &[("d", &d)]);
    call("list", text, Call::list(within(&directory, "*")))
}

/// Where, with a space before it, and the pattern that it makes of another.
fn place(draw: &mut Draw, pattern: &str) -> (String, String) {
    let phrase = |draw: &mut Draw, text: &str| crate::data::grammar::expand(draw, text).replace(" ,", ",");
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
    let (kind, pattern) = kind(draw);
    let (place, pattern) = place(draw, &pattern);
    let text = FILES.draw(draw);
    call("list", filled(&text, &[("k", &kind), ("p", &place)]), Call::list(pattern))
}

/// What is listed, and its pattern.
fn kind(draw: &mut Draw) -> (String, String) {
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
            let shown = if draw.chance(30) { quoted(draw, &stem) } else { stem.clone() };
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
            let shown = if draw.chance(30) { quoted(draw, &stem) } else { stem.clone() };
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
            let shown = if draw.chance(30) { quoted(draw, &tail) } else { tail.clone() };
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

fn everything_below(draw: &mut Draw) -> Request {
    let (kind, pattern) =
        (draw.pick(&["files", "files", "files", "everything", "documents", "file names"]), "**/*");
    let mut text = FILES.draw(draw);
    text = text.replace("{p}", " {p}");
    if draw.chance(65) {
        let place = crate::data::grammar::expand(draw, "$W");
        let text = filled(&text, &[("k", kind), ("p", &place)]).replace(" ,", ",");
        return call("list", text, Call::list(pattern));
    }
    let directory = draw.directory();
    let d = named(draw, &directory);
    let place = crate::data::grammar::expand(
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
    let text = FILES.draw(draw);
    if draw.chance(65) {
        let place = if draw.chance(60) { crate::data::grammar::expand(draw, " $H") } else { String::new() };
        return call("list", filled(&text, &[("k", kind), ("p", &place)]), Call::list("*/"));
    }
    let directory = draw.directory();
    let d = named(draw, &directory);
    let place = crate::data::grammar::expand(
        draw,
        " [in|inside|under|within] [{d}|the {d} directory|the {d} folder|the folder {d}]",
    );
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
