//! Names of files, directories and hosts, made on the spot.

use super::{Draw, words::capital};

const FAMOUS: &[&str] = &[
    "README.md",
    "Cargo.toml",
    "package.json",
    "main.rs",
    "src/main.rs",
    "src/lib.rs",
    "index.html",
    "main.py",
    "setup.py",
    "notes.txt",
    "todo.txt",
    "CHANGELOG.md",
    "config.toml",
    "config.yaml",
    "requirements.txt",
    "app.js",
    "index.js",
    "tsconfig.json",
    "go.mod",
    "main.go",
    "style.css",
    "data.csv",
    ".env",
    "main.c",
    "Cargo.lock",
    "pyproject.toml",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "docker-compose.yml",
    "server.log",
];
const BARE: &[&str] = &[
    "Makefile",
    "LICENSE",
    "Dockerfile",
    "README",
    "CHANGELOG",
    "Rakefile",
    "Gemfile",
    "Procfile",
    "TODO",
    "AUTHORS",
    "NOTICE",
    "Jenkinsfile",
    "Vagrantfile",
    "COPYING",
    "INSTALL",
    "VERSION",
    "CODEOWNERS",
    "BUILD",
];
const HIDDEN: &[&str] = &[
    ".gitignore",
    ".env",
    ".bashrc",
    ".editorconfig",
    ".dockerignore",
    ".npmrc",
    ".prettierrc",
    ".gitattributes",
    ".env.local",
    ".eslintrc.json",
    ".zshrc",
    ".profile",
];
const EXTENSIONS: &[&str] = &[
    "rs", "py", "md", "txt", "json", "toml", "yaml", "yml", "html", "css", "js", "ts", "sh", "c", "h", "go",
    "java", "csv", "log", "cfg", "ini", "xml", "sql", "conf", "tsx", "jsx", "cpp", "rb", "php", "lock",
    "proto", "tex", "bak", "env", "svg", "kt", "swift", "lua", "hs", "dat", "tsv", "rst", "bat", "scss",
    "vue", "patch",
];
const DIRECTORIES: &[&str] = &[
    "src",
    "tests",
    "docs",
    "lib",
    "bin",
    "examples",
    "benches",
    "scripts",
    "assets",
    "build",
    "config",
    "include",
    "app",
    "public",
    "static",
    "test",
    "tools",
    "data",
    "templates",
    "vendor",
    "target",
    "dist",
    "web",
    "api",
    "utils",
    "models",
    "src/core",
    "docs/guide",
    "src/cli",
    "tests/it",
    "pkg",
    "cmd",
    "internal",
    "logs",
    "notes",
];
pub const TOP_LEVEL: &[&str] = &[
    "com", "org", "net", "io", "dev", "app", "de", "co.uk", "edu", "gov", "fr", "ai", "info", "eu", "ch",
    "tech", "blog", "example", "nl", "jp",
];

impl Draw {
    /// A name without an extension.
    pub fn stem(&mut self) -> String {
        self.owned(|draw| match draw.between(0, 99) {
            0..28 => draw.word(),
            28..46 => {
                let separator = draw.pick(&["_", "-", "_", "-", "."]);
                let mut parts = vec![draw.word(), draw.word()];
                if draw.chance(25) {
                    parts.push(draw.word());
                }
                if draw.chance(10) {
                    parts = parts.iter().map(|part| capital(part)).collect();
                }
                parts.join(separator)
            }
            46..54 => {
                let first = draw.word();
                let first = if draw.chance(50) { capital(&first) } else { first };
                (0..draw.between(1, 2)).fold(first, |name, _| name + &capital(&draw.word()))
            }
            54..66 => draw.syllables(1, 4),
            66..76 => draw.jumble(3, 12),
            76..80 => draw.jumble(8, 24),
            80..85 => {
                let separator = draw.pick(&["", "_", "-"]);
                format!("{}{separator}{}", draw.word(), draw.small(0, 999))
            }
            85..88 => {
                let (year, month, day) = (draw.between(1990, 2035), draw.between(1, 12), draw.between(1, 28));
                let prefix = if draw.chance(50) { format!("{}-", draw.word()) } else { String::new() };
                format!("{prefix}{year}-{month:02}-{day:02}")
            }
            88..91 => format!("{}-v{}.{}", draw.word(), draw.small(0, 12), draw.small(0, 30)),
            91..95 => draw.word().to_uppercase(),
            95..97 => capital(&draw.word()),
            97..98 => format!("{}{}", draw.foreign(), draw.word()),
            98..99 => draw.jumble(1, 2),
            _ => format!("{}_{}", draw.word(), draw.jumble(4, 8)),
        })
    }

    /// Without its dot.
    pub fn extension(&mut self) -> String {
        if self.chance(88) {
            self.pick(EXTENSIONS).to_owned()
        } else {
            self.owned(|draw| draw.jumble(2, 4).to_lowercase())
        }
    }

    /// A name without a directory, without spaces.
    pub fn file_name(&mut self) -> String {
        match self.between(0, 99) {
            0..5 if !self.held_out => self.pick(FAMOUS).rsplit('/').next().unwrap_or_default().to_owned(),
            5..8 if !self.held_out => self.pick(BARE).to_owned(),
            8..10 if !self.held_out => self.pick(HIDDEN).to_owned(),
            10..12 => format!(".{}", self.stem()),
            12..16 => format!("{}.{}.{}", self.stem(), self.word(), self.extension()),
            16..18 => format!("{}.{}", self.stem(), self.extension().to_uppercase()),
            18..20 => self.owned(|draw| draw.word().to_uppercase()),
            _ => format!("{}.{}", self.stem(), self.extension()),
        }
    }

    /// A name that only directories have; nothing when it would not be a new one.
    pub fn known_directory(&mut self) -> Option<&'static str> {
        (!self.held_out && self.chance(30)).then(|| self.pick(DIRECTORIES))
    }

    /// A relative directory without a slash at its end.
    pub fn directory(&mut self) -> String {
        let one = |draw: &mut Self| match draw.between(0, 99) {
            0..25 if !draw.held_out => draw.pick(DIRECTORIES).to_owned(),
            25..28 => format!(".{}", draw.word()),
            _ => draw.stem(),
        };
        let levels = self.weighted(&[(70, 1), (20, 2), (7, 3), (3, 4)]);
        let mut names: Vec<String> = (0..levels).map(|_| one(self)).collect();
        if levels > 1 && self.chance(8) {
            names[1] = names[0].clone();
        }
        let prefix = self.weighted(&[(94, ""), (2, "../"), (2, "./"), (1, "/"), (1, "~/")]);
        format!("{prefix}{}", names.join("/"))
    }

    /// A path to a file, now and then with a directory, or from elsewhere.
    pub fn path(&mut self) -> String {
        match self.between(0, 99) {
            0..4 if !self.held_out => self.pick(FAMOUS).to_owned(),
            0..58 => self.file_name(),
            58..86 => format!("{}/{}", self.directory(), self.file_name()),
            86..90 => format!("../{}", self.file_name()),
            90..92 => format!("./{}", self.file_name()),
            92..94 => format!(
                "/{}/{}",
                self.pick(&["etc", "tmp", "var/log", "home/user", "usr/share", "opt"]),
                self.file_name()
            ),
            94..95 => format!("~/{}", self.file_name()),
            95..96 => format!("../../{}/{}", self.stem(), self.file_name()),
            96..98 => {
                // Named like its directory.
                let directory = self.directory();
                let name = directory.rsplit('/').next().unwrap_or_default();
                format!("{directory}/{name}.{}", self.extension())
            }
            _ => format!("{}/{}", self.directory(), self.file_name()),
        }
    }

    /// A path with spaces in it: such a one is always quoted.
    pub fn spaced_path(&mut self) -> String {
        let mut name = self.word();
        for _ in 0..self.between(1, 2) {
            name = format!("{name} {}", self.word());
        }
        if self.chance(40) {
            name = capital(&name);
        }
        if self.chance(10) {
            name = format!("{name} ({})", self.between(1, 9));
        }
        let directory = if self.chance(25) { format!("{}/", self.directory()) } else { String::new() };
        format!("{directory}{name}.{}", self.extension())
    }

    pub fn host(&mut self) -> String {
        let label = |draw: &mut Self| {
            draw.owned(|draw| match draw.between(0, 9) {
                0..4 => draw.word(),
                4..6 => format!("{}-{}", draw.word(), draw.word()),
                6..8 => draw.syllables(2, 3),
                8 => format!("{}{}", draw.word(), draw.word()),
                _ => draw.jumble(3, 9).to_lowercase(),
            })
        };
        let name = label(self);
        let front = match self.between(0, 9) {
            0 | 1 => "www.".to_owned(),
            2 => self.pick(&["docs.", "api.", "blog.", "en.", "m.", "raw."]).to_owned(),
            3 => format!("{}.", label(self)),
            _ => String::new(),
        };
        format!("{front}{name}.{}", self.pick(TOP_LEVEL))
    }

    /// Returns the part of an address after the host: a path, a query and a fragment, each of them sometimes.
    pub fn location(&mut self) -> String {
        let mut text = String::new();
        if self.chance(65) {
            for _ in 0..self.small(1, 4) {
                text = format!("{text}/{}", if self.chance(70) { self.word() } else { self.stem() });
            }
            match self.between(0, 9) {
                0 => text.push('/'),
                1 | 2 => text = format!("{text}.{}", self.pick(&["html", "txt", "json", "md", "php", "xml"])),
                3 => text = text.replace('-', "%20"),
                _ => {}
            }
        } else if self.chance(25) {
            text.push('/');
        }
        if self.chance(15) {
            let pairs: Vec<String> = (0..self.between(1, 3))
                .map(|_| {
                    let value = if self.chance(50) { self.word() } else { self.between(0, 999).to_string() };
                    format!("{}={value}", self.pick(&["q", "id", "page", "lang", "v", "sort", "user", "ref"]))
                })
                .collect();
            let slash = if text.is_empty() { "/" } else { "" };
            text = format!("{text}{slash}?{}", pairs.join("&"));
        }
        if self.chance(5) {
            text = format!("{text}#{}", self.word());
        }
        text
    }

    /// With its scheme.
    pub fn url(&mut self) -> String {
        let scheme = if self.chance(85) { "https" } else { "http" };
        let host = match self.between(0, 99) {
            0..5 => format!("localhost:{}", self.pick(&[80, 3000, 5000, 8000, 8080, 9090])),
            5..9 => format!(
                "{}.{}.{}.{}",
                self.between(1, 255),
                self.between(0, 255),
                self.between(0, 255),
                self.between(1, 254)
            ),
            9..14 => format!("{}:{}", self.host(), self.between(81, 9999)),
            _ => self.host(),
        };
        format!("{scheme}://{host}{}", self.location())
    }
}
