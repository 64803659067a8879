//! What the small reader of Rust makes of comments, literals, test items and `use` groups.

use super::*;

fn blanked(text: &str) -> String {
    blank(text).iter().collect()
}

fn test_marks(text: &str) -> Vec<usize> {
    let code = read(text);
    let lines = code.lines().filter(|(_, _, test)| *test);
    lines.map(|(line, ..)| line).collect()
}

fn paths(text: &str) -> Vec<(usize, String)> {
    read(text).uses
}

#[test]
fn comments_are_blank() {
    assert_eq!(blanked("a // b\nc"), "a     \nc");
    assert_eq!(
        blanked("a /* b /* c */\n d */ e"),
        "a             \n      e"
    );
}

#[test]
fn literals_are_blank() {
    assert_eq!(blanked(r#"f("a\"b", c)"#), "f(      , c)");
    assert_eq!(blanked("f('x', '\\'', '\"', y)"), "f(   ,     ,    , y)");
    assert_eq!(blanked("r#\"a\"b\"# c"), "         c");
    assert_eq!(blanked("br\"a\\\" c"), "b      c");
}

#[test]
fn lifetimes_and_raw_identifiers_stay() {
    for code in [
        "fn f<'a>(x: &'a str) {}",
        "r#type + bar#[x]",
        "'outer: loop {}",
    ] {
        assert_eq!(blanked(code), code);
    }
}

#[test]
fn unfinished_literals_end_with_the_file() {
    for text in ["\"a\nb", "/* a", "r##\"a\"#", "'\\"] {
        assert_eq!(blanked(text).trim(), "");
    }
}

#[test]
fn test_items_are_marked() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { c[1] }\n}\nfn d() {}";
    assert_eq!(test_marks(text), [2, 3, 4, 5]);
    assert_eq!(
        test_marks("#[test]\nfn a(x: [u8; 2])\n{\n}\nfn b() {}"),
        [1, 2, 3, 4]
    );
    assert_eq!(test_marks("#[tokio::test]\nfn a() {}\nb"), [1, 2]);
    assert_eq!(
        test_marks("#[cfg(all(test, unix))]\nuse a;\nfn b() {}"),
        [1, 2]
    );
}

#[test]
fn a_further_condition_does_not_hide_a_test() {
    assert_eq!(test_marks("#[cfg(all(test, not(loom)))]\nmod a {}"), [1, 2]);
}

#[test]
fn other_items_are_not_marked() {
    for text in [
        "#[cfg(not(test))]\nfn a() {}",
        "#[cfg(feature)]\nfn a() {}",
        "#[derive(Debug)]\nstruct Tests;",
        "// #[cfg(test)]\nfn a() {}",
    ] {
        assert_eq!(test_marks(text), [0; 0], "{text}");
    }
}

#[test]
fn use_groups_are_spelled_out() {
    let text = "use a::b;\nuse std::{\n    fs,\n    io::{self, Read as _},\n    net::*,\n};\nx";
    let expected = [
        (1, "a::b"),
        (3, "std::fs"),
        (4, "std::io::self"),
        (4, "std::io::Read as _"),
        (5, "std::net::*"),
    ];
    assert_eq!(
        paths(text),
        expected.map(|(line, path)| (line, path.to_owned()))
    );
}
