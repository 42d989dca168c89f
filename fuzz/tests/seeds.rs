//! Runs every target on its seeds and random variations of them, the same in every run. libFuzzer
//! finds more; this finds regressions.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Once;

use pinwise_fuzz::TARGETS;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of random inputs for each target: a fifth, unless `PINWISE_REPLAYS=all` requests all.
fn input_count() -> u64 {
    match std::env::var("PINWISE_REPLAYS") {
        Ok(which) if which == "all" => 4000,
        _ => 800,
    }
}

/// Maximum length of an input; libFuzzer's is that of the longest seed.
const MAX_SEED_BYTES: usize = 32 << 10;
/// Address space of all targets together, bytes: excessive allocations die.
const MEMORY: u64 = 8 << 30;

/// Values at which arithmetic tends to break.
const EDGES: [u64; 8] = [
    0,
    1,
    0x7f,
    0x80,
    u32::MAX as u64,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// SplitMix64 (Steele, Lea, Flood 2014): pseudo-random numbers.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below a limit; 0 if the limit is 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % (limit as u64).max(1)) as usize
    }
}

/// A seed with some changes, possibly joined with another.
fn mutate_seed(seeds: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = seeds[chance.below(seeds.len())].clone();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        let end = at + chance.below((bytes.len() - at).min(64) + 1);
        match chance.below(7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            3 => {
                let other = &seeds[chance.below(seeds.len())];
                let from = chance.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            4 => {
                let edge = EDGES[chance.below(EDGES.len())];
                let width = 1 << chance.below(4);
                bytes.splice(at..at.max(end), edge.to_le_bytes()[..width].to_vec());
            }
            5 => {
                let number = EDGES[chance.below(EDGES.len())].to_string();
                bytes.splice(at..end, number.into_bytes());
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << chance.below(8);
                }
            }
        }
    }
    bytes.truncate(MAX_SEED_BYTES);
    bytes
}

/// The seeds of a target, in the order of their names; a record of each kind is a seed, too.
fn read_seeds(name: &str) -> Vec<Vec<u8>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(name);
    let mut files = list_files(&own);
    if name == "record" {
        let records = list_files(&own.join("../../../tests/data/records"));
        files.extend(
            records
                .into_iter()
                .filter(|file| file.extension() == Some("json".as_ref())),
        );
    }
    let seeds = files.iter().map(|file| std::fs::read(file).unwrap());
    seeds.filter(|seed| seed.len() <= MAX_SEED_BYTES).collect()
}

fn list_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("each target has seeds");
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn limit_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let maximum = getrlimit(Resource::As).maximum;
        let limit = Rlimit {
            current: Some(maximum.unwrap_or(MEMORY).min(MEMORY)),
            maximum,
        };
        setrlimit(Resource::As, limit).unwrap();
    });
}

#[track_caller]
fn check(name: &str) {
    limit_memory();
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let seeds = read_seeds(name);
    let mut chance = Chance(7);
    let mutants = (0..input_count()).map(|_| mutate_seed(&seeds, &mut chance));
    for input in seeds.iter().cloned().chain(mutants.collect::<Vec<_>>()) {
        if catch_unwind(|| target(&input)).is_err() {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.failed"));
            std::fs::write(&file, &input).unwrap();
            panic!("{name} fails on {}", file.display());
        }
    }
}

macro_rules! tests {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })+
    };
}

pinwise_fuzz::with_targets!(tests);
