//! `pinwise spin scan` finds loops with hints in files.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{self, split_words};

/// Builds an ELF file for this machine with one section of code, at 0x1000.
fn build_elf(machine: u16, code: &[u8]) -> Vec<u8> {
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let section_headers_at = 64 + code.len() as u64;
    for half in [3u16, machine] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1u32.to_le_bytes());
    for address in [0, 0, section_headers_at] {
        file.extend(address.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    // Size of the file's header; size and number of program headers, of section headers; index of
    // the section with names.
    for half in [64u16, 0, 0, 64, 3, 2] {
        file.extend(half.to_le_bytes());
    }
    file.extend(code);
    file.extend([0; 64]);
    // The section of code: no name, contents in the file, allocated and executable.
    for word in [0u32, 1] {
        file.extend(word.to_le_bytes());
    }
    for long in [6u64, 0x1000, 64, code.len() as u64] {
        file.extend(long.to_le_bytes());
    }
    file.extend([0; 24]);
    // The section with names: only the empty name.
    for word in [0u32, 3] {
        file.extend(word.to_le_bytes());
    }
    for long in [0u64, 0, section_headers_at, 1] {
        file.extend(long.to_le_bytes());
    }
    file.extend([0; 24]);
    file
}

/// A loop that checks memory after each hint, and one with thirty hints between two checks.
const WAITS: [u8; 40] = [
    0x8b, 0x07, // 1000: mov eax, [rdi]
    0x85, 0xc0, // 1002: test eax, eax
    0x74, 0x04, // 1004: je 100a
    0xf3, 0x90, // 1006: pause
    0xeb, 0xf6, // 1008: jmp 1000
    0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, // 100a: ret
    0xb9, 0x1e, 0x00, 0x00, 0x00, // 1010: mov ecx, 30
    0xf3, 0x90, // 1015: pause
    0xff, 0xc9, // 1017: dec ecx
    0x75, 0xfa, // 1019: jne 1015
    0x83, 0x3f, 0x00, // 101b: cmp dword [rdi], 0
    0x74, 0xf0, // 101e: je 1010
    0xc3, // 1020: ret
    0xf3, 0x90, // 1021: pause
    0xff, 0xce, // 1023: dec esi
    0x75, 0xfa, // 1025: jne 1021
    0xc3, // 1027: ret
];

fn run_in_folder(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = support::pinwise(&folder.join("store"));
    command
        .args(["--store", "none", "spin", "scan"])
        .args(arguments);
    command.current_dir(folder).output().unwrap()
}

/// Creates a folder with a file of this name.
fn create_folder_with(name: &str, content: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    folder
}

#[test]
fn loops_are_reported_with_their_gaps() {
    let folder = create_folder_with("waits", &build_elf(62, &WAITS));
    // Without --chip the machine of the test would be among them.
    let chips = "--chip broadwell --chip skylake-sp --chip ice-lake-sp --chip zen-4";
    let line = format!("{chips} --chip meteor-lake-p waits");
    let output = run_in_folder(folder.path(), &split_words(&line));
    let (text, errors) = support::decode_output(&output);
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""));
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn the_limit_names_loops_and_chips_and_sets_the_status() {
    let folder = create_folder_with("waits", &build_elf(62, &WAITS));
    let scan = |arguments: &[&str]| {
        let output = run_in_folder(folder.path(), &[arguments, &["waits"]].concat());
        let (text, _) = support::decode_output(&output);
        // Line breaks do not matter.
        let words: Vec<&str> = text.split_whitespace().collect();
        (output.status.code(), words.join(" "))
    };
    let (status, text) = scan(&["--max-blind-gap", "1us"]);
    assert_eq!(status, Some(1), "{text}");
    let verdict = text.split("Failed:").nth(1).unwrap();
    assert!(
        verdict.contains("0x1015") && verdict.contains("skylake-sp"),
        "{text}"
    );
    assert!(!verdict.contains("broadwell"), "{text}");
    let (status, text) = scan(&split_words(
        "--max-blind-gap 1us --chip Broadwell --unknown pass",
    ));
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.contains("The blind gap of 1 loop is unknown"),
        "{text}"
    );
    // What a gate does not know does not pass.
    let unknown = split_words("--max-blind-gap 1us --chip broadwell");
    let (status, text) = scan(&unknown);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("Unknown: 1 of 3 loops"), "{text}");
    assert!(text.contains("0x1021 (not known from the code)"), "{text}");
}

/// The compiled code of `_tpause(0, __rdtsc() + 1000)` between two checks.
#[test]
fn a_deadline_is_not_priced_as_a_pause() {
    let code = [
        0x0f, 0x31, // 1000: rdtsc
        0x05, 0xe8, 0x03, 0x00, 0x00, // 1002: add eax, 1000
        0x66, 0x0f, 0xae, 0xf1, // 1007: tpause ecx
        0x83, 0x3f, 0x00, // 100b: cmp dword [rdi], 0
        0x74, 0xf0, // 100e: je 1000
        0xc3,
    ];
    let folder = create_folder_with("tpause", &build_elf(62, &code));
    let scan = |unknown: &str| {
        let line = format!("--max-blind-gap 100ns --unknown {unknown} --chip skylake-sp tpause");
        let output = run_in_folder(folder.path(), &split_words(&line));
        let (text, _) = support::decode_output(&output);
        let words: Vec<&str> = text.split_whitespace().collect();
        (output.status.code(), words.join(" "))
    };
    let (status, text) = scan("pass");
    assert_eq!(status, Some(0), "{text}");
    let says = [
        "A hint lasts until a deadline that the program computes",
        "The blind gap of 1 loop is unknown.",
    ];
    assert!(says.iter().all(|one| text.contains(one)), "{text}");
    assert!(!text.contains("skylake-sp"), "{text}");
    let (status, text) = scan("fail");
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("0x1000 (until a deadline)"), "{text}");
}

#[test]
fn json_is_the_record() {
    let folder = create_folder_with("waits", &build_elf(62, &WAITS));
    let output = run_in_folder(
        folder.path(),
        &["--format", "json", "--chip", "skylake-sp", "waits"],
    );
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["schema"], "pinwise.spin-scan/1");
    assert!(record["passed"].is_null() && record["max_blind_gap_ns"].is_null());
    let loops = record["loops"].as_array().unwrap();
    let gaps: Vec<&serde_json::Value> = loops.iter().map(|one| &one["gap_hints"]).collect();
    assert_eq!(
        gaps,
        [&serde_json::json!(1), &30.into(), &serde_json::Value::Null]
    );
    assert_eq!(loops[1]["outer"]["address"], "0x1010");
    assert!(loops[2]["outer"].is_null() && loops[2]["gaps"][0]["ns"].is_null());
    let pause_ns = record["chips"][0]["pause_ns"].as_f64().unwrap();
    let gap_ns = loops[1]["gaps"][0]["ns"].as_f64().unwrap();
    assert!((gap_ns / pause_ns - 30.0).abs() < 1e-9);
}

#[test]
fn a_sparse_file_is_not_read() {
    let folder = create_folder_with("sparse", &build_elf(62, &WAITS));
    // Reading it would take 3 GB of memory for zeros.
    let mut holes = std::fs::OpenOptions::new();
    let holes = holes.write(true).open(folder.path().join("sparse"));
    holes.unwrap().set_len(3 << 30).unwrap();
    let message = "sparse: a sparse file: 3072 MB, of which 0 are written";
    check_refusal(&run_in_folder(folder.path(), &["sparse"]), message);
}

#[test]
fn scripts_and_damaged_files_among_many_are_skipped() {
    let whole = build_elf(62, &WAITS);
    let folder = create_folder_with("waits", &whole);
    std::fs::write(folder.path().join("script"), "#!/bin/sh\n").unwrap();
    std::fs::write(folder.path().join("short"), &whole[..90]).unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let all = ["folder", "gone", "script", "short", "waits"];
    let arguments = [&["--format", "json"][..], &all].concat();
    let output = run_in_folder(folder.path(), &arguments);
    let (text, errors) = support::decode_output(&output);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record["loops"].as_array().unwrap().len(), 3);
    let skipped = record["skipped"].as_array().unwrap();
    let paths: Vec<&str> = skipped
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, all[..4]);
    for words in [
        "script: not an ELF file",
        "short: the ELF file is truncated",
    ] {
        assert!(errors.contains(words), "{errors}");
    }
    // A loop beyond the limit still fails; if no file can be read, the scan is refused.
    let limit = split_words("--chip skylake-sp --max-blind-gap 1us script waits");
    assert_eq!(run_in_folder(folder.path(), &limit).status.code(), Some(1));
    check_refusal(
        &run_in_folder(folder.path(), &["script", "short"]),
        "none of 2 files could be read; the first is script: not an ELF file",
    );
}

#[track_caller]
fn check_refusal(output: &Output, words: &str) {
    let (text, errors) = support::decode_output(output);
    assert_eq!(
        (output.status.code(), text.as_str()),
        (Some(2), ""),
        "{errors}"
    );
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains(words), "{errors}");
}

#[test]
fn loops_of_a_compiled_program_are_found_with_their_functions() {
    let folder = tempfile::tempdir().unwrap();
    let source = support::root().join("tests/data/code/waits.c");
    let compiled = Command::new("cc")
        .args(["-O2", "-o", "waits"])
        .arg(source)
        .current_dir(folder.path())
        .output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        return support::report_skip("no C compiler");
    }
    if !cfg!(target_arch = "x86_64") {
        return support::report_skip("the expected figures are those of x86-64");
    }
    let output = run_in_folder(folder.path(), &["--format", "json", "--here", "waits"]);
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let loops = record["loops"].as_array().unwrap();
    let find = |name: &str| {
        let found = loops.iter().find(|one| one["function"] == name);
        let found = found.unwrap_or_else(|| panic!("{name} in {record:#}"));
        (
            found["kind"].as_str().unwrap().to_owned(),
            found["gap_hints"].as_u64(),
        )
    };
    assert_eq!(find("polling_flag"), ("polling".to_owned(), Some(1)));
    assert_eq!(
        find("blind_countdown"),
        ("blind_delay".to_owned(), Some(250))
    );
    assert_eq!(find("nested_thirty"), ("blind_delay".to_owned(), Some(30)));
    assert_eq!(find("netfx_lock"), ("blind_delay".to_owned(), None));
    let netfx = loops
        .iter()
        .find(|one| one["function"] == "netfx_lock")
        .unwrap();
    assert_eq!(netfx["algorithms"][0]["id"], "netfx_awarelock");
    assert_eq!(netfx["algorithms"][0]["strength"], "likely");
    let here = &record["chips"][0];
    assert_eq!(here["id"], "here");
    assert!(here["pause_ns"].as_f64().is_some_and(|ns| ns > 0.0));
}
