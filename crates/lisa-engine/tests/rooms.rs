//! The engine's rooms: which uses which, without a cycle, and as ARCHITECTURE.md shows it.

// A test that cannot go on has failed, and says so.
#![allow(clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Files that belong to every room: the errors, the configuration and the log.
const SHARED: &[&str] = &["error", "config", "log"];
/// What is not part of a release.
const NOT_SHIPPED: &[&str] = &["fuzz", "bin"];

type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_rooms_have_no_cycle_and_the_map_shows_them() {
    let graph = rooms();
    let order = order(&graph);
    assert_eq!(
        order.len(),
        graph.len(),
        "these rooms use each other in a circle: {:?}",
        left(&graph, &order)
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let page = fs::read_to_string(&path).expect("ARCHITECTURE.md");
    let (begin, end) = (
        "<!-- rooms: written by `UPDATE_EXPECT=1 cargo test -p lisa-engine --test rooms` -->\n",
        "<!-- rooms: end -->",
    );
    let (before, rest) = page.split_once(begin).expect("the map has a place for the rooms");
    let (_, after) = rest.split_once(end).expect("that place has an end");
    let drawn = format!("{before}{begin}{}{end}{after}", table(&graph, &order));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &drawn).expect("ARCHITECTURE.md is written");
    }
    assert!(
        page == drawn || std::env::var_os("UPDATE_EXPECT").is_some(),
        "ARCHITECTURE.md is out of date: run this test with UPDATE_EXPECT=1"
    );
}

#[test]
fn what_classifies_knows_nothing_of_the_engine_but_the_words_and_asks_nobody() {
    let mut faults = Vec::new();
    for file in files(&source().join("classify")) {
        let text = shipped(&fs::read_to_string(&file).expect("a source file"));
        let foreign = used(&text, 2)
            .into_iter()
            .filter(|path| !path.starts_with("classify") && !path.starts_with("api::words"));
        faults.extend(foreign.map(|path| format!("{}: crate::{path}", file.display())));
        for asks in [
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
            "Instant::now",
            "SystemTime::now",
            "Timestamp::now",
        ] {
            if text.lines().any(|line| line.contains(asks) && !line.trim_start().starts_with("//")) {
                faults.push(format!("{}: {asks}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// A file without its tests.
fn shipped(text: &str) -> String {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned()
}

fn rooms() -> Graph {
    let mut graph = Graph::new();
    for file in files(&source()) {
        let inside = file.strip_prefix(source()).expect("below the source");
        let first = inside.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
        let room = first.trim_end_matches(".rs");
        if room == "lib" || SHARED.contains(&room) || NOT_SHIPPED.contains(&room) {
            continue;
        }
        let uses = graph.entry(room.to_owned()).or_default();
        let text = shipped(&fs::read_to_string(&file).expect("a source file"));
        uses.extend(used(&text, 1).into_iter().filter(|other| {
            other != room && !SHARED.contains(&other.as_str()) && !NOT_SHIPPED.contains(&other.as_str())
        }));
    }
    graph
}

/// The paths behind `crate::` in a file, cut to so many names.
fn used(text: &str, names: usize) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        for path in paths(rest) {
            let cut: Vec<&str> = path.split("::").take(names).collect();
            found.insert(cut.join("::"));
        }
    }
    found
}

/// The paths that begin here: one, or those of a list in braces.
fn paths(text: &str) -> Vec<String> {
    let name_end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let name = &text[..name_end];
    let rest = &text[name_end..];
    if let Some(list) = text.strip_prefix('{') {
        return items(list).iter().flat_map(|item| paths(item.trim())).collect();
    }
    match rest.strip_prefix("::") {
        Some(rest) if !name.is_empty() => {
            paths(rest).into_iter().map(|path| format!("{name}::{path}")).collect()
        }
        _ if name.is_empty() => Vec::new(),
        _ => vec![name.to_owned()],
    }
}

/// What a list in braces holds, up to its own end.
fn items(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&list[begin..at]);
                return found;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// The rooms from those that use nothing to those that use the most; rooms in a circle are left out.
fn order(graph: &Graph) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    while let Some((next, _)) = graph
        .iter()
        .find(|(room, uses)| !order.contains(room) && uses.iter().all(|used| order.contains(used)))
    {
        order.push(next.clone());
    }
    order
}

fn left<'a>(graph: &'a Graph, order: &[String]) -> Vec<&'a String> {
    graph.keys().filter(|room| !order.contains(room)).collect()
}

fn table(graph: &Graph, order: &[String]) -> String {
    let rows = order.iter().map(|room| {
        let uses: Vec<&str> =
            order.iter().filter(|used| graph[room].contains(*used)).map(String::as_str).collect();
        format!("| `{room}` | {} |\n", if uses.is_empty() { "–".to_owned() } else { uses.join(", ") })
    });
    format!("| room | uses |\n|---|---|\n{}", rows.collect::<String>())
}

#[test]
fn paths_are_read_from_lists_in_lists() {
    let text = "use crate::{a::{b, c::D}, e};\nlet x = crate::f::g();\n// crate::h\n";
    let found: Vec<String> = used(text, 2).into_iter().collect();
    assert_eq!(found, ["a::b", "a::c", "e", "f::g"]);
}
