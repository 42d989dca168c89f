use super::*;

#[track_caller]
fn check_identity(vendor: &str, identity: (u32, u32, Option<u32>), expected: &[&str]) {
    let (family, model, stepping) = identity;
    let found = find_chips(vendor, family, model, stepping);
    let ids: Vec<&str> = found.iter().map(|chip| chip.id).collect();
    assert_eq!(ids, expected);
}

#[test]
fn chips_of_one_model_differ_by_stepping() {
    check_identity("GenuineIntel", (6, 0x55, Some(4)), &["skylake-sp"]);
    check_identity("GenuineIntel", (6, 0x55, Some(7)), &["cascade-lake-sp"]);
    // Cooper Lake: not measured.
    check_identity("GenuineIntel", (6, 0x55, Some(11)), &[]);
    check_identity(
        "GenuineIntel",
        (6, 0x55, None),
        &["skylake-sp", "cascade-lake-sp"],
    );
    check_identity("GenuineIntel", (6, 0x9e, Some(9)), &["kaby-lake"]);
    check_identity("GenuineIntel", (6, 0x9e, Some(10)), &["coffee-lake"]);
}

#[test]
fn hybrids_have_two_kinds_of_core() {
    check_identity(
        "GenuineIntel",
        (6, 0x97, Some(2)),
        &["alder-lake-p", "gracemont"],
    );
    check_identity("AuthenticAMD", (25, 1, Some(1)), &["zen-3-server"]);
    check_identity("AuthenticAMD", (16, 77, Some(1)), &["k10"]);
    check_identity("SomebodyElse", (6, 0x55, Some(4)), &[]);
}

#[test]
fn names_are_forgiving_and_unknown_ones_get_a_hint() {
    for name in ["skylake-sp", "SKYLAKE_SP", "Skylake SP", "skx", "SkylakeX"] {
        assert_eq!(chip(name).map(|chip| chip.id), Ok("skylake-sp"), "{name}");
    }
    let error = chip("skylake-ps").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no chip is called 'skylake-ps'; did you mean skylake-sp?"
    );
    assert_eq!(chip("qqqq").unwrap_err().nearest, None);
}

#[test]
fn rows_have_plausible_figures_and_unique_names() {
    let lines = include_str!("rows.txt").lines();
    let rows = lines.filter(|line| !line.starts_with('#'));
    assert_eq!(rows.count(), chips().count(), "a row was not parsed");
    let mut names: Vec<String> = chips()
        .flat_map(|chip| std::iter::once(&chip.id).chain(&chip.also))
        .map(|name| normalise_name(name))
        .collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "two chips have the same name");
    for chip in chips() {
        let (low, high) = chip.pause_cycles;
        assert!(0.0 < low && low <= high && high < 300.0, "{}", chip.id);
        assert!((1.0..6.0).contains(&chip.ghz), "{}", chip.id);
        assert!(chip.signature.steppings.0 <= chip.signature.steppings.1);
        assert!(chip.source.len() > 20 && chip.ghz_from.len() > 10);
    }
    assert_eq!(count_cheaper_chips(0.1), 0);
    assert_eq!(count_cheaper_chips(300.0), chips().count());
}

#[test]
fn rows_are_those_of_the_corpus() {
    let Some(corpus) = crate::table::tests::read_corpus("pause_latencies.csv") else {
        return;
    };
    let mut compared = 0;
    for row in corpus.iter().filter(|row| row["instruction"] == "PAUSE") {
        let is_dump = row["source"].contains("InstLatx64");
        let Some(chip) = chips().find(|chip| chip.name == row["microarch"]) else {
            assert!(!is_dump, "{} is missing", row["microarch"]);
            continue;
        };
        if is_dump {
            let cycles = (
                row["cycles_low"].parse().unwrap(),
                row["cycles_high"].parse().unwrap(),
            );
            assert_eq!(chip.pause_cycles, cycles, "{}", chip.id);
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}
