//! Jinja as the templates in model files expect it from `transformers`, with limits on what a template may cost.
//!
//! Source: the `transformers` library renders chat templates with blocks trimmed, `break` and `continue`, a
//! `tojson` that escapes nothing for HTML, `raise_exception` and `strftime_now`.

use std::{
    io, iter,
    time::{SystemTime, UNIX_EPOCH},
};

use minijinja::{Environment, Error, ErrorKind, Value, syntax::SyntaxConfig, value::Kwargs};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde::Serialize as _;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::job::Outcome;

/// The longest template, in bytes. The longest of today take 20 KiB.
const MAX_SOURCE: usize = 256 * 1024;

/// The most steps of one rendering. The longest of today's templates takes some 300 for a message.
const MAX_STEPS: u64 = 2_000_000;

/// The longest output of one rendering, in bytes.
const MAX_OUTPUT: usize = 64 << 20;

/// The name of the template in errors.
const NAME: &str = "chat template";

/// A compiled template.
#[derive(Debug)]
pub(super) struct Jinja(Environment<'static>);

impl Jinja {
    /// Compiles a template.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong with it.
    pub(super) fn new(source: &str) -> Result<Self, String> {
        if source.len() > MAX_SOURCE {
            return Err(format!("it has {} bytes, the limit is {MAX_SOURCE}", source.len()));
        }
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.expect("the usual delimiters"));
        environment.set_fuel(Some(MAX_STEPS));
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", |format: String| Date::now().format(&format));
        environment
            .add_template_owned(NAME, without_generation_marks(source))
            .map_err(|error| one_line(&error))?;
        Ok(Self(environment))
    }

    /// Renders the template. Steps and output are limited, and what a step costs is not.
    pub(super) fn render(&self, context: Value) -> Outcome {
        let template = self.0.get_template(NAME).expect("it was added when this was made");
        let mut output = Limited { bytes: Vec::new(), exceeded: false };
        let rendered = template.render_captured_to(context, &mut output).map(drop);
        match rendered {
            _ if output.exceeded => Outcome::Stopped(format!("it writes more than {MAX_OUTPUT} bytes")),
            Ok(()) => match String::from_utf8(output.bytes) {
                Ok(text) => Outcome::Text(text),
                Err(_) => Outcome::Refused("it wrote something that is not text".to_owned()),
            },
            Err(error) if is_out_of_fuel(&error) => {
                Outcome::Stopped(format!("it takes more than {MAX_STEPS} steps"))
            }
            Err(error) => Outcome::Refused(one_line(&error)),
        }
    }
}

/// Returns true if an error, or what caused it, is the end of the steps.
fn is_out_of_fuel(error: &Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    iter::successors(Some(first), |error| error.source())
        .filter_map(|error| error.downcast_ref::<Error>())
        .any(|error| error.kind() == ErrorKind::OutOfFuel)
}

/// Removes `{% generation %}` tags. They mark what a model is trained on and have no meaning for rendering.
fn without_generation_marks(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        text.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let inner = &tag[2..end];
        if matches!(inner.trim_matches(['-', '+', ' ']), "generation" | "endgeneration") {
            // A comment keeps the dashes, which strip white space.
            let (open, close) = (inner.starts_with('-'), inner.ends_with('-'));
            text.push_str(if open { "{#-" } else { "{#" });
            text.push_str(if close { "-#}" } else { "#}" });
        } else {
            text.push_str(&tag[..end + 2]);
        }
        rest = &tag[end + 2..];
    }
    text.push_str(rest);
    text
}

/// A buffer of at most [`MAX_OUTPUT`] bytes.
struct Limited {
    bytes: Vec<u8>,
    exceeded: bool,
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT {
            self.exceeded = true;
            return Err(io::Error::other("the output is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn one_line(error: &Error) -> String {
    let mut text = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        text = format!("{text}: {source}");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes JSON as `json.dumps(value, ensure_ascii=False)` does: `{"a": [1, 2]}`.
#[expect(clippy::needless_pass_by_value, reason = "a filter is given its arguments")]
fn to_json(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    for name in ["ensure_ascii", "separators", "sort_keys"] {
        options.get::<Option<Value>>(name)?;
    }
    options.assert_all_used()?;
    let mut bytes = Vec::new();
    let written = match indent {
        Some(width) => {
            let indent = " ".repeat(width.min(16));
            let pretty = PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut bytes, pretty))
        }
        None => value.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced)),
    };
    written.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    Ok(Value::from(String::from_utf8(bytes).expect("JSON is text")))
}

/// Writes a space after each comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: io::Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

/// A moment in UTC.
struct Date {
    year: i64,
    /// From 1.
    month: usize,
    day: i64,
    /// Sunday is 0.
    weekday: usize,
    /// Seconds of the day.
    seconds: i64,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Date {
    fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::at(i64::try_from(since.as_secs()).unwrap_or(0))
    }

    /// `seconds` since 1970. Source: Howard Hinnant, "chrono-compatible low-level date algorithms".
    fn at(seconds: i64) -> Self {
        let days = seconds.div_euclid(86_400);
        let shifted = days + 719_468; // from the first of March of the year 0
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Self {
            year: year + era * 400 + i64::from(month <= 2),
            month: usize::try_from(month).expect("1 to 12"),
            day: of_year - (153 * shifted_month + 2) / 5 + 1,
            weekday: usize::try_from((days + 4).rem_euclid(7)).expect("0 to 6"),
            seconds: seconds.rem_euclid(86_400),
        }
    }

    /// Formats as strftime does, with the parts that chat templates use. Other parts stay as they are.
    fn format(&self, format: &str) -> String {
        let (hour, minute, second) = (self.seconds / 3600, self.seconds / 60 % 60, self.seconds % 60);
        let (month, day) = (MONTHS[self.month - 1], DAYS[self.weekday]);
        let mut text = String::new();
        let mut rest = format.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            match rest.next() {
                Some('Y') => text.push_str(&self.year.to_string()),
                Some('m') => text.push_str(&format!("{:02}", self.month)),
                Some('d') => text.push_str(&format!("{:02}", self.day)),
                Some('e') => text.push_str(&format!("{:2}", self.day)),
                Some('B') => text.push_str(month),
                Some('b') => text.push_str(&month[..3]),
                Some('A') => text.push_str(day),
                Some('a') => text.push_str(&day[..3]),
                Some('H') => text.push_str(&format!("{hour:02}")),
                Some('M') => text.push_str(&format!("{minute:02}")),
                Some('S') => text.push_str(&format!("{second:02}")),
                Some('%') => text.push('%'),
                Some(other) => text.extend(['%', other]),
                None => text.push('%'),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    #[track_caller]
    fn check(template: &str, wanted: &str) {
        let context =
            context! { name => "Ada", list => ["a", "b"], object => context! { z => 1, a => "é<'\"" } };
        let rendered = Jinja::new(template).unwrap().render(context);
        assert_eq!(rendered, Outcome::Text(wanted.to_owned()), "{template}");
    }

    #[test]
    fn what_transformers_gives_its_templates() {
        check("{%- if true %}\n  {{ name }}\n  {% endif %}\nx", "  Ada\nx");
        check("{{ object | tojson }}", r#"{"z": 1, "a": "é<'\""}"#);
        check("{{ list | tojson(indent=2) }}", "[\n  \"a\",\n  \"b\"\n]");
        check(
            "{%- set ns = namespace(n=0) -%}{%- for x in list[::-1] -%}{%- set ns.n = ns.n + 1 -%}{{ x }}{%- if loop.first -%}{%- continue -%}{%- endif -%}{%- break -%}{%- endfor -%}{{ ns.n }}",
            "ba2",
        );
        check("{{ name.startswith('A') }}{{ name.lower().split('d')[-1].strip() }}", "Truea");
        check(
            "{{ '\\n x\\n'.lstrip('\\n').rstrip('\\n') }}|{% for k, v in object.items() %}{{ k }}{% endfor %}",
            " x|za",
        );
        check("a{%- generation -%} b {%- endgeneration %} c{% generation %}d{% endgeneration %}", "ab cd");
        check("{{ missing }}{% if missing is defined %}x{% endif %}{{ name is string }}", "True");
        check("{{ list[1:] | join }}{{ (list | length) - 1 }}{{ name[:2] }}", "b1Ad");
    }

    #[test]
    fn what_a_template_raises_is_its_error() {
        let raise = Jinja::new("{{ raise_exception('roles must\\nalternate') }}").unwrap();
        let Outcome::Refused(message) = raise.render(context! {}) else { panic!("it was rendered") };
        assert!(message.contains("roles must alternate"), "{message}");
        assert!(Jinja::new("{% if %}").is_err());
    }

    #[test]
    fn nothing_runs_or_writes_for_ever() {
        assert!(Jinja::new(&"x".repeat(MAX_SOURCE + 1)).unwrap_err().contains("the limit"));
        let busy = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}";
        let in_macro = format!("{{% macro m() %}}{busy}{{% endmacro %}}{{{{ m() }}}}");
        let long = "{% set x = 'x' * 1000000 %}{% for a in range(1000) %}{{ x }}{% endfor %}";
        for (template, why) in [(busy, "steps"), (&in_macro, "steps"), (long, "bytes")] {
            let outcome = Jinja::new(template).unwrap().render(context! {});
            assert!(matches!(&outcome, Outcome::Stopped(limit) if limit.contains(why)), "{outcome:?}");
        }
    }

    #[test]
    fn dates_are_dates() {
        for (seconds, wanted) in [
            (0, "1970-01-01 Thursday 00:00:00"),
            (951_782_399, "2000-02-28 Monday 23:59:59"),
            (951_782_400, "2000-02-29 Tuesday 00:00:00"),
            (1_735_689_600, "2025-01-01 Wednesday 00:00:00"),
            (4_107_542_400, "2100-03-01 Monday 00:00:00"),
        ] {
            assert_eq!(Date::at(seconds).format("%Y-%m-%d %A %H:%M:%S"), wanted);
        }
        assert_eq!(Date::at(0).format("%d %b %Y %q 5%"), "01 Jan 1970 %q 5%");
    }
}
