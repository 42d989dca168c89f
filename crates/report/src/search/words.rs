//! Names, costs and large numbers of a search, in words.

use crate::style::{columns, power_of_ten, quantity, range, table, visible, width};
use pinwise_format::{count, percent};
use pinwise_record::{Direction, SearchModelRecord, SearchRecord, SpaceRecord};

/// Longest name in a table.
const LONGEST_NAME: usize = 40;
/// Names are not cut shorter than this, whatever stands beside them.
const SHORTEST_NAME: usize = 8;
/// What the letters of the shortest names mean.
const LETTERS: &str = "p packages, n NUMA nodes, l LLCs, c cores, s CPUs per core, u CPUs";

/// A row of a table of placements.
pub(crate) struct NamedRow<'a> {
    /// Is it marked as the best?
    pub(crate) is_marked: bool,
    /// The placement's full name.
    pub(crate) name: &'a str,
    /// What stands beside it.
    pub(crate) cells: Vec<String>,
}

/// A table of placements, whose names get the room that the rest leaves them.
pub(crate) fn named_table(header: &[&str], rows: &[NamedRow<'_>]) -> String {
    let full: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let has_marks = rows.iter().any(|row| row.is_marked);
    let build = |names: &[String]| {
        let lines = rows.iter().zip(names).map(|(row, name)| {
            let mark = match (has_marks, row.is_marked) {
                (false, _) => "",
                (true, true) => "* ",
                (true, false) => "  ",
            };
            let mut line = vec![format!("{mark}{name}")];
            line.extend(row.cells.iter().cloned());
            line
        });
        table(header, lines.collect())
    };
    let (mut names, mut are_letters) = short_names(&full, LONGEST_NAME);
    let mut text = build(&names);
    let widest = text.lines().map(width).max();
    let over = widest.unwrap_or(0).saturating_sub(columns());
    if over > 0 {
        let longest = names.iter().map(|name| width(name)).max();
        let room = longest.unwrap_or(0).saturating_sub(over);
        (names, are_letters) = short_names(&full, room.max(SHORTEST_NAME));
        text = build(&names);
    }
    if are_letters {
        text.push_str(&format!("  ({LETTERS})\n"));
    }
    text
}

/// Names in this many characters, those of shapes all in one form; and whether
/// that is the one of letters.
fn short_names(names: &[&str], width: usize) -> (Vec<String>, bool) {
    let forms: Vec<[String; 3]> = names.iter().map(|name| forms(name)).collect();
    let fits = |form: usize| {
        let shapes = forms.iter().filter(|f| f[0] != f[2]);
        shapes.into_iter().all(|f| f[form].chars().count() <= width)
    };
    let form = (0..2).find(|form| fits(*form)).unwrap_or(2);
    let names = forms.iter().map(|f| cut_within(&f[form], width));
    let are_letters = form == 2 && forms.iter().any(|f| f[0] != f[2]);
    (names.collect(), are_letters)
}

/// `shape:pkg=1,llc=2,core=8,smt=1`, `pkg=1,llc=2,core=8,smt=1`, `p1 l2 c8 s1`.
fn forms(name: &str) -> [String; 3] {
    let name = visible(name);
    let Some(bare) = name.strip_prefix("shape:") else {
        return [name.clone(), name.clone(), name];
    };
    let mut letters = bare.replace(',', " ").replace(" threads", "");
    for (level, letter) in [
        ("pkg=", "p"),
        ("numa=", "n"),
        ("llc=", "l"),
        ("core=", "c"),
        ("smt=", "s"),
        ("cpu=", "u"),
        (" @ ", " @"),
    ] {
        letters = letters.replace(level, letter);
    }
    [name.clone(), bare.to_owned(), letters]
}

/// Text in this many characters, cut in the middle: names differ at their ends.
fn cut_within(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let first: String = text.chars().take(kept / 2).collect();
    let last: String = text.chars().skip(length - (kept - kept / 2)).collect();
    format!("{first}…{last}")
}

/// The value of the metric that has this cost.
pub(super) fn value(record: &SearchRecord, cost: f64) -> String {
    let value = match record.metric.better {
        Direction::Higher => cost.recip(),
        Direction::Lower | Direction::Other(_) => cost,
    };
    quantity(value, &record.metric.unit)
}

/// The values between two costs; the unit once where it is the same.
pub(super) fn value_range(record: &SearchRecord, low: f64, high: f64) -> String {
    let (low, high) = match record.metric.better {
        Direction::Higher => (value(record, high), value(record, low)),
        Direction::Lower | Direction::Other(_) => (value(record, low), value(record, high)),
    };
    range(&low, &high)
}

/// `45 shapes of 2.8·10^17 placements of 128 threads.`
pub(super) fn placements(space: &[SpaceRecord]) -> Option<String> {
    let (first, last) = (space.first()?, space.last()?);
    let shapes: usize = space.iter().map(|space| space.shapes).sum();
    let placements: f64 = space
        .iter()
        .map(|space| space.placements.parse().unwrap_or(f64::NAN))
        .sum();
    let threads = match space.len() {
        1 => count(first.threads, "thread"),
        many => format!(
            "{} to {} threads ({many} numbers)",
            first.threads, last.threads
        ),
    };
    Some(format!(
        "{} of {} of {threads}.",
        count(shapes, "shape"),
        large(placements)
    ))
}

/// A number of placements that may have dozens of digits.
fn large(placements: f64) -> String {
    if !placements.is_finite() {
        return "very many placements".to_owned();
    }
    if placements < 1e6 {
        let ending = if placements > 1.5 { "s" } else { "" };
        return format!("{placements:.0} placement{ending}");
    }
    format!("{} placements", power_of_ten(placements))
}

/// What the model is worth.
pub(super) fn model(model: &SearchModelRecord) -> String {
    let missed = model.prediction_error.map_or_else(String::new, |error| {
        format!(
            ", first runs missed their predictions by {}",
            percent(error)
        )
    });
    format!(
        "Model: {}; runs vary by {}{missed}.",
        visible(model.judgement.as_str()),
        percent(model.noise_sd)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_apart_however_short() {
        let names = [
            "os-default",
            "shape:pkg=2,numa=2,llc=16,core=128,smt=2 @ 256 threads",
            "shape:pkg=2,numa=2,llc=8,core=128,smt=2 @ 256 threads",
        ];
        let of = |width| short_names(&names, width);
        assert_eq!(of(60), (names.map(str::to_owned).to_vec(), false));
        assert_eq!(
            of(48).0[2],
            "pkg=2,numa=2,llc=8,core=128,smt=2 @ 256 threads"
        );
        let (short, are_letters) = of(26);
        assert!(are_letters);
        assert_eq!(
            short,
            [
                "os-default",
                "p2 n2 l16 c128 s2 @256",
                "p2 n2 l8 c128 s2 @256"
            ]
        );
        assert_eq!(of(9).0[0], "os-d…ault");
        assert_eq!(
            short_names(&["\u{1b}[31m"], 27),
            (vec!["\\u{1b}[31m".to_owned()], false)
        );
        assert_eq!(cut_within("abc", 0), "…");
    }

    #[test]
    fn numbers_of_placements() {
        let space = |threads, placements: &str, shapes| SpaceRecord {
            threads,
            placements: placements.to_owned(),
            shapes,
        };
        let one = [space(128, "282429536481000000", 45)];
        assert_eq!(
            placements(&one).unwrap(),
            "45 shapes of 2.8·10^17 placements of 128 threads."
        );
        let two = [space(1, "1", 1), space(4, "12", 5)];
        assert_eq!(
            placements(&two).unwrap(),
            "6 shapes of 13 placements of 1 to 4 threads (2 numbers)."
        );
        assert_eq!(
            placements(&[space(1, "1", 1)]).unwrap(),
            "1 shape of 1 placement of 1 thread."
        );
        let damaged = [space(2, "many", 3)];
        assert!(placements(&damaged).unwrap().contains("very many"));
        assert_eq!(placements(&[]), None);
    }
}
