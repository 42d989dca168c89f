//! Call stacks: with and without frame pointers, of inlined functions, through libraries.

use super::{ProfiledProgram, to_number};
use crate::support::split_words;

/// A chain of nine functions, called by `main` or by the comparison of `qsort`.
const DEEP: &str = r#"
#include <stdlib.h>
#include <string.h>
#define LINK(name, next) __attribute__((noinline)) unsigned long name(unsigned long x) { \
  volatile char kept[KEPT]; kept[KEPT - 1] = 0; \
  unsigned long y = next(x + 1); __asm__ volatile("" : "+r"(y)); return y + x; }
__attribute__((noinline)) unsigned long leaf(unsigned long x) {
  for (int i = 0; i < 20000; i++) x = x * 6364136223846793005UL + 1442695040888963407UL;
  return x;
}
LINK(f8, leaf) LINK(f7, f8) LINK(f6, f7) LINK(f5, f6)
LINK(f4, f5) LINK(f3, f4) LINK(f2, f3) LINK(f1, f2)
static volatile unsigned long sink;
__attribute__((noinline)) int compare(const void *a, const void *b) {
  sink += f1(*(const unsigned *)a);
  return *(const int *)a - *(const int *)b;
}
int main(int argc, char **argv) {
  int numbers[64];
  for (int round = 0; round < 40; round++) {
    if (argc > 1) {
      for (int i = 0; i < 64; i++) numbers[i] = (i * 37) % 64;
      qsort(numbers, 64, sizeof *numbers, compare);
    } else {
      for (int i = 0; i < 300; i++) sink += f1(i);
    }
  }
  return sink == 1;
}
"#;

/// Asks the time through two libraries without frame pointers, half of the times 200 calls deep.
const ASKING: &str = r#"
#include <time.h>
static volatile long sink;
__attribute__((noinline)) long tick(long x) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_nsec + x;
}
__attribute__((noinline)) void ask(long n) { for (long i = 0; i < n; i++) sink += tick(i); }
__attribute__((noinline)) void deeper(int n) { if (n) deeper(n - 1); else ask(1000000); sink += n; }
int main(void) { for (int i = 0; i < 8; i++) deeper(200 * (i % 2)); return sink == 1; }
"#;

/// A loop that the compiler puts into its caller.
const INLINED: &str = r"
static inline __attribute__((always_inline)) unsigned long inner(unsigned long x) {
  for (int i = 0; i < 100000; i++) x = x * 6364136223846793005UL + 1442695040888963407UL;
  return x;
}
__attribute__((noinline)) unsigned long outer(unsigned long x) { return inner(x) + 1; }
int main(void) {
  unsigned long x = 1;
  for (int i = 0; i < 3000; i++) x = outer(x);
  return x == 0;
}
";

#[test]
fn inlined_functions_have_their_names_and_lines() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    std::fs::write(stage.path("inlined.c"), INLINED).unwrap();
    let profile = |debug: &str| {
        stage.run_shell(&format!("cc -O2 {debug} -o inlined inlined.c"));
        let command = split_words("profile --store none --folded i.txt -- ./inlined");
        let record = stage.run_for_json(&command);
        let folded = std::fs::read_to_string(stage.path("i.txt")).unwrap();
        (record["functions"][0]["name"].clone(), record, folded)
    };
    let (hottest, record, folded) = profile("-g");
    assert_eq!(hottest, "inner", "{folded}");
    assert!(folded.contains("main;outer;inner"), "{folded}");
    let source = record["instructions"][0]["source"].as_str().unwrap();
    assert!(source.ends_with("inlined.c:3"), "{source}");
    // Without debug information the inlined function is unknown.
    let (hottest, _, folded) = profile("");
    assert_eq!(hottest, "outer", "{folded}");
    assert!(!folded.contains("inner"), "{folded}");
}

#[test]
fn stacks_without_frame_pointers_are_whole() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    std::fs::write(stage.path("deep.c"), DEEP).unwrap();
    let build = |how: &str| {
        let line = format!("cc -O2 {how} -fno-optimize-sibling-calls -o deep deep.c");
        stage.run_shell(&line);
    };
    build("-DKEPT=8 -fomit-frame-pointer");
    let chain = "f1;f2;f3;f4;f5;f6;f7;f8;leaf";
    let profile = |how: &str, arguments: &[&str]| {
        let command = [
            "profile", "--store", "none", "--stacks", how, "--folded", "d.txt", "--",
        ];
        let record = stage.run_for_json(&[&command[..], &["./deep"], arguments].concat());
        let folded = std::fs::read_to_string(stage.path("d.txt")).unwrap();
        let whole = |line: &&str| {
            let stack = line.rsplit_once(' ').unwrap().0;
            stack.contains("main;") && stack.contains(chain) && !stack.contains("[broken]")
        };
        let samples = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap();
        let seen: f64 = folded.lines().filter(whole).map(samples).sum();
        (
            seen / to_number(&record["total"]["samples"]),
            record,
            folded,
        )
    };
    for (arguments, caller) in [(&[][..], "main;f1"), (&["sort"], "compare;f1")] {
        // pinwise notices that the program was not built with frame pointers.
        let (share, record, folded) = profile("auto", arguments);
        assert!(share > 0.9, "{share} {folded}");
        assert!(folded.contains(caller), "{folded}");
        let stacks = &record["stacks"];
        assert_eq!(stacks["by"], "dwarf", "{stacks}");
        assert!(to_number(&stacks["mean_frames"]) > 8.0, "{stacks}");
        let broken = to_number(&stacks["broken"]["samples"]);
        assert!(
            broken < 0.1 * to_number(&record["total"]["samples"]),
            "{stacks}"
        );
    }
    // Stacks by frame pointers are broken here, and marked as such.
    build("-DKEPT=2048 -fomit-frame-pointer");
    let (share, record, folded) = profile("fp", &[]);
    let known = "[broken];f8;leaf";
    assert!(share < 0.1 && folded.contains(known), "{folded}");
    assert!(
        to_number(&record["stacks"]["mean_frames"]) < 3.0,
        "{record}"
    );
    let text = stage.run_for_text(&[
        "profile", "--store", "none", "--stacks", "fp", "--", "./deep",
    ]);
    assert!(
        text.contains("Stacks by frame pointers") && text.contains("broken"),
        "{text}"
    );
    let (_, record, folded) = profile("none", &[]);
    assert!(
        record["stacks"].is_null() && folded.contains("leaf"),
        "{folded}"
    );
    // If the program has frame pointers they are used, which costs less. The leaf has none, but its
    // caller is known.
    build("-DKEPT=8 -fno-omit-frame-pointer");
    let (share, record, folded) = profile("auto", &[]);
    assert_eq!(record["stacks"]["by"], "fp", "{record}");
    assert!(share > 0.9, "{share} {folded}");
}

#[test]
fn stacks_go_through_libraries_and_are_broken_beyond_the_kernels_depth() {
    let Some(stage) = ProfiledProgram::new() else {
        return;
    };
    std::fs::write(stage.path("asking.c"), ASKING).unwrap();
    stage.run_shell("cc -O1 -fno-omit-frame-pointer -o asking asking.c");
    let command = [
        "profile", "--store", "none", "--folded", "k.txt", "--", "./asking",
    ];
    let record = stage.run_for_json(&command);
    assert_eq!(record["stacks"]["by"], "fp", "{record}");
    let folded = std::fs::read_to_string(stage.path("k.txt")).unwrap();
    let count_samples = |is_selected: &dyn Fn(&str) -> bool| -> f64 {
        let lines = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
        let selected = lines.filter(|(stack, _)| is_selected(stack));
        selected
            .map(|(_, samples)| samples.parse::<f64>().unwrap())
            .sum()
    };
    let whole = count_samples(&|stack| stack.contains("main;deeper;ask;tick"));
    let cut = count_samples(&|stack| stack.starts_with("[broken]") && stack.contains(";ask;tick"));
    let all = count_samples(&|_| true);
    assert!(
        whole > 0.3 * all && cut > 0.3 * all,
        "{whole} {cut} of {all}: {folded}"
    );
}
