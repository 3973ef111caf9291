//! `completions` and `man`.

use std::fs;

use super::{Bench, bare, finish};

/// Goal: for each shell something that knows the commands, without a store.
#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = finish(&mut bare(["completions", shell]), "").fine();
        for word in ["sessionlog", "salvage", "--store", "no-chunks"] {
            // fish writes options without their hyphens.
            assert!(text.contains(word.trim_start_matches('-')), "{word} for {shell}");
        }
    }
    assert_eq!(finish(&mut bare(["completions", "tcsh"]), "").code, Some(2));
}

/// Goal: a page for the program and for each command, with what its help says; nothing is overwritten.
#[test]
fn manual_pages() {
    let page = |args: &[&str]| finish(&mut bare(args), "").fine();
    let program = page(&["man"]);
    assert!(program.contains(".TH sessionlog 1") && program.contains("Exit codes"), "{program}");
    let read = page(&["man", "read"]);
    assert!(read.contains(".TH sessionlog-read 1") && read.contains("\\-\\-from"), "{read}");
    finish(&mut bare(["man", "no-such"]), "").fails(2, &["no-such"]);

    let bench = Bench::new();
    let folder = bench.root().join("share/man1");
    let folder = folder.to_str().unwrap();
    assert_eq!(page(&["man", "--all", folder]), "");
    let names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let help = page(&["--help"]);
    for command in ["read", "diff", "grep", "completions", "man", "backup"] {
        assert!(help.contains(command) && names.contains(&format!("sessionlog-{command}.1")), "{names:?}");
    }
    assert_eq!(fs::read_to_string(format!("{folder}/sessionlog.1")).unwrap(), program);
    assert!(!names.iter().any(|name| name.contains("help")), "{names:?}");
    finish(&mut bare(["man", "--all", folder]), "").fails(2, &["exists"]);
}
