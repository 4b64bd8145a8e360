//! No circles inside a folder. Which crate may use which is in the manifests, and Cargo holds it.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, assert_none, files, source};

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

/// The modules of one folder form a graph without circles. The root of the folder is not part of it: it stands for the
/// folder, and what it re-exports counts as imported from where it is declared.
#[test]
fn no_circle_inside_a_folder() {
    let modules: BTreeMap<Vec<String>, String> = files()
        .into_iter()
        .filter(|file| source::is_product(&file.path) && !source::is_test_file(&file.path))
        .filter_map(|file| Some((module_path(&file)?, source::code_without_tests(&file.text))))
        .collect();
    let mut found = Vec::new();
    for folder in modules.keys() {
        let is_child = |path: &Vec<String>| path.len() > folder.len() && path.starts_with(folder);
        let mut graph: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (path, code) in modules.iter().filter(|(path, _)| is_child(path)) {
            let from = path[folder.len()].as_str();
            let edges = graph.entry(from).or_default();
            for used in absolute_paths(path, code) {
                if let Some(to) = child_of(folder, &used, &modules)
                    && to != from
                {
                    edges.insert(to);
                }
            }
        }
        for circle in circles(&graph) {
            let folder = folder.join("/");
            found.push(format!("{folder}: {}", circle.join(", ")));
        }
    }
    assert_none("these files import each other in a circle", &found);
}

/// The path of a module below its crate: `["agent", "run_loop"]`, and `["agent"]` for `lib.rs` of `crates/agent`. The
/// crate at the top is `kontekst`. The older circles of the engine and of the starter model stay.
fn module_path(file: &File) -> Option<Vec<String>> {
    let (name, inside) = match file.path.strip_prefix("crates/") {
        Some(rest) => rest.split_once("/src/")?,
        None => ("kontekst", file.path.strip_prefix("src/")?),
    };
    let inside = inside.strip_suffix(".rs")?;
    if inside == "main" || ["engine", "starter"].contains(&name) {
        return None;
    }
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    let parts = inside.split('/').filter(|part| *part != "lib");
    Some(std::iter::once(name).chain(parts).map(str::to_owned).collect())
}

/// Returns every path in the code of `module` that begins with `crate`, `super` or `self`, with the name of the crate in
/// front.
fn absolute_paths(module: &[String], code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for keyword in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(keyword) {
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || "_$:".contains(c)) {
                continue;
            }
            let mut found = Vec::new();
            use_tree(&code[at..], "", &mut found);
            for path in found {
                let mut absolute: Vec<String> = module.to_vec();
                for part in path.split('/') {
                    match part {
                        "crate" => absolute.truncate(1),
                        "super" => drop(absolute.pop()),
                        "self" => {}
                        part => absolute.push(part.to_owned()),
                    }
                }
                paths.push(absolute);
            }
        }
    }
    paths
}

/// Returns the direct child of `folder` that a path leads into, also through a re-export in its `mod.rs`.
fn child_of(folder: &[String], path: &[String], modules: &BTreeMap<Vec<String>, String>) -> Option<String> {
    let name = path.strip_prefix(folder)?.first()?;
    let child = [folder, std::slice::from_ref(name)].concat();
    if modules.contains_key(&child) {
        return Some(name.clone());
    }
    let code = &modules[folder];
    for (at, _) in code.match_indices("use ") {
        let mut found = Vec::new();
        use_tree(&code[at + "use ".len()..], "", &mut found);
        for import in found {
            let import = import.strip_prefix("self/").unwrap_or(&import);
            if let Some((module, item)) = import.split_once('/')
                && item.rsplit('/').next() == Some(name)
                && modules.contains_key(&[folder, &[module.to_owned()]].concat())
            {
                return Some(module.to_owned());
            }
        }
    }
    None
}

/// Returns the sets of nodes that can reach each other.
fn circles(graph: &BTreeMap<&str, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reach = |start: &str| -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = graph.get(start).into_iter().flatten().collect();
        while let Some(node) = open.pop() {
            if seen.insert(node.clone()) {
                open.extend(graph.get(node.as_str()).into_iter().flatten());
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<String>> = graph.keys().map(|node| (*node, reach(node))).collect();
    let mut found = BTreeSet::new();
    for (node, _) in reached.iter().filter(|(node, reached)| reached.contains(**node)) {
        let circle =
            reached.iter().filter(|(other, back)| reached[node].contains(**other) && back.contains(*node));
        found.insert(circle.map(|(other, _)| (*other).to_owned()).collect::<Vec<_>>());
    }
    found.into_iter().collect()
}

#[test]
fn circles_are_found() {
    let edges = |nodes: &[&str]| nodes.iter().map(|&node| node.to_owned()).collect::<BTreeSet<_>>();
    let graph = [("a", edges(&["b"])), ("b", edges(&["c"])), ("c", edges(&["b", "d"])), ("d", edges(&[]))];
    assert_eq!(circles(&graph.into()), [["b", "c"]]);
    let module = ["agent".to_owned(), "run_loop".to_owned()];
    let code = "use super::{model_call::ask, self};\nuse crate::calls::Call;\nself::f(); my_self::g();";
    let paths: Vec<_> = absolute_paths(&module, code).iter().map(|path| path.join("/")).collect();
    assert_eq!(paths, ["agent/calls/Call", "agent/model_call/ask", "agent", "agent/run_loop/f"]);
}
