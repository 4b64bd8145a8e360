//! Which module may use which: layers from top to bottom.

use super::{assert_none, files, source};

/// The modules by layer, the lowest first. A module may only use modules in the lines above its own line.
///
/// `doors/*` are folders that must not use each other. What they share is in `doors` itself.
const LAYERS: &[&[&str]] = &[
    &["core"],
    &["config"],
    &["provider", "context", "sessions", "tools", "skills", "models", "subagent_log"],
    &["agent"],
    &["pb"],
    &["doors"],
    &["doors/*"],
    &["daemon"],
    &["client"],
    &["cli"],
];

#[test]
fn layers_point_down() {
    let mut wrong = Vec::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        let Some(inside) = file.path.strip_prefix("src/") else { continue };
        if ["lib.rs", "main.rs"].contains(&inside) {
            continue;
        }
        let Some((from, module)) = layer(inside.trim_end_matches(".rs").trim_end_matches("/mod")) else {
            wrong.push(format!("{}: its module has no place in LAYERS", file.path));
            continue;
        };
        for (line, used) in crate_paths(&file.text) {
            if let Some((to, other)) = layer(&used)
                && to >= from
                && other != module
            {
                wrong.push(format!("{}:{line}: {module} may not use {used}", file.path));
            }
        }
    }
    assert_none("these point up or aside", &wrong);
}

/// Returns the layer of a path such as `doors/kontekst/convert`, and the module of that layer that it is in.
fn layer(path: &str) -> Option<(usize, String)> {
    let mut found = None;
    for (height, modules) in LAYERS.iter().enumerate() {
        for module in *modules {
            if let Some(folder) = module.strip_suffix("/*") {
                // Only a folder or a file is a module. `doors/Stop` is an item of `doors`.
                let name = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
                let name = name.and_then(|rest| rest.split('/').next()).filter(|name| !name.is_empty());
                if let Some(name) = name.filter(|name| !name.starts_with(char::is_uppercase)) {
                    found = Some((height, format!("{folder}/{name}")));
                }
            } else if path == *module || path.strip_prefix(module).is_some_and(|rest| rest.starts_with('/')) {
                found = Some((height, (*module).to_owned()));
            }
        }
    }
    found
}

/// Returns every path that begins with `crate`, with its line and with `/` for `::`. Groups are expanded.
fn crate_paths(text: &str) -> Vec<(usize, String)> {
    // A link in a comment is not a dependency, so it may point up.
    let code = source::code(text);
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || "_$".contains(before)) {
            continue;
        }
        let line = source::line_of(&code, at);
        let mut found = Vec::new();
        use_tree(&code[at + "crate::".len()..], "", &mut found);
        paths.extend(found.into_iter().map(|path| (line, path)));
    }
    paths
}

/// Reads one `a::b`, `a::{b, c::d}` or `{a, b}` and returns the text after it.
fn use_tree<'a>(text: &'a str, prefix: &str, found: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = use_tree(rest, prefix, found).trim_start();
            match rest.strip_prefix(',') {
                Some(more) if more.trim_start().starts_with('}') => rest = more.trim_start(),
                Some(more) => {
                    rest = more;
                    continue;
                }
                None => {}
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '*').unwrap_or(text.len());
    let path = if prefix.is_empty() { text[..end].to_owned() } else { format!("{prefix}/{}", &text[..end]) };
    let rest = &text[end..];
    if let Some(deeper) = rest.strip_prefix("::")
        && deeper.trim_start().starts_with(|c: char| c.is_alphabetic() || "_{*".contains(c))
    {
        return use_tree(deeper, &path, found);
    }
    found.push(path);
    // `a as b`
    let rest = rest.trim_start();
    rest.strip_prefix("as ")
        .map_or(rest, |name| name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
}

#[test]
fn crate_paths_are_read_out_of_groups() {
    let text = "use crate::{\n    core::{Message, Role as R},\n    doors,\n};\n// crate::cli::x\nlet a = crate::cli::Run::new();\n";
    let paths: Vec<_> = crate_paths(text).into_iter().map(|(line, path)| format!("{line} {path}")).collect();
    assert_eq!(paths, ["1 core/Message", "1 core/Role", "1 doors", "6 cli/Run/new"]);
    assert_eq!(layer("doors/kontekst/convert"), Some((6, "doors/kontekst".to_owned())));
    assert_eq!(layer("doors/Stop"), Some((5, "doors".to_owned())));
    assert_eq!(layer("corelike"), None);
}
