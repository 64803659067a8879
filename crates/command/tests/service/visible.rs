//! What others wrote moves nobody's terminal; a pipe gets it as it is.

use crate::running::Node;
use crate::terminal::Terminal;

/// Sets a title, clears the screen, and turns the direction of writing round.
const SAID: &str = "a\u{1b}]0;mine\u{7}\u{9b}2J\u{202e}b";
const SEEN: &str = "a\\u001b]0;mine\\u0007\\u009b2J\\u202eb";
/// A reason holds no controls, but may turn the direction round.
const TURNED: &str = "a\u{202e}b";

/// What a command shows on a terminal.
fn shown(node: &Node, line: &str) -> String {
    let command = node.command(line.split(' '));
    Terminal::start(command, (200, 50)).end().0
}

#[test]
fn a_terminal_gets_no_character_that_it_would_act_on() {
    let node = Node::start();
    let apply = node.file("f.flow");
    std::fs::write(&apply, "make -> [q] -> work").expect("writable");
    assert_eq!(node.run("flow apply f f.flow", "").code, 0);
    assert_eq!(node.run(&format!("job create f/q {SAID}"), "").code, 0);
    let stays = "echo in; cat";
    let mut leader = node.begin(&format!("elect db --value {SAID}"), stays);
    leader.expect("in");
    let mut holder = node.begin(&format!("lock gate --reason {TURNED}"), stays);
    holder.expect("in");
    for line in [
        &format!("decide first {SAID}"),
        "job show 1",
        "job show 1 --body",
        "job show 1 --json",
        "elect show db",
        "elect list",
        "elect leader db",
        "elect leader db --json",
        "gate show gate",
    ] {
        let seen = shown(&node, line);
        let acts = |c: &char| c.is_control() && !"\r\n".contains(*c) || *c == '\u{202e}';
        assert_eq!(seen.chars().find(acts), None, "{line}: {seen:?}");
        let wanted = if line == "gate show gate" {
            "a\\u202eb"
        } else {
            SEEN
        };
        assert!(seen.contains(wanted), "{line}: {seen:?}");
    }
    for line in ["decide first other", "job show 1 --body", "elect leader db"] {
        let piped = node.run(line, "").stdout;
        assert!(piped.contains(SAID), "{line}: {piped:?}");
    }
    assert!(node.run("gate show gate", "").stdout.contains(TURNED));
    // A refusal repeats what was said.
    let refused = shown(&node, &format!("gate show {SAID}"));
    assert!(!refused.contains('\u{1b}'), "{refused:?}");
    assert_eq!((leader.end().code, holder.end().code), (0, 0));
}
