//! Ranges of pages: how they are found, written, parsed and moved back.

use super::*;

fn page_range(pages: std::ops::Range<u64>, nodes: &[(usize, u64)]) -> PageRange {
    let page = page_bytes();
    PageRange {
        start: pages.start * page,
        end: pages.end * page,
        nodes: nodes.iter().copied().collect(),
    }
}

fn moved_memory(before: Vec<PageRange>, nodes: CpuSet) -> MovedMemory {
    MovedMemory {
        process: i32::try_from(std::process::id()).unwrap(),
        start: 1,
        nodes,
        before,
    }
}

/// Adds adjacent pages on these nodes.
fn add_pages(nodes: &[usize]) -> Vec<PageRange> {
    let mut ranges = Vec::new();
    for (index, &node) in nodes.iter().enumerate() {
        add_page(&mut ranges, index as u64 * page_bytes(), node);
    }
    ranges
}

#[test]
fn adjacent_pages_on_a_node_are_one_range() {
    let ranges = add_pages(&[1, 1, 1, 0, 1]);
    let expected = [
        page_range(0..3, &[(1, 3)]),
        page_range(3..4, &[(0, 1)]),
        page_range(4..5, &[(1, 1)]),
    ];
    assert_eq!(ranges, expected);
    let mut ranges = ranges;
    add_page(&mut ranges, 6 * page_bytes(), 1);
    assert_eq!(ranges.last().unwrap(), &page_range(4..7, &[(1, 2)]));
    add_page(&mut ranges, (7 + 1000) * page_bytes(), 1);
    assert_eq!(ranges.len(), 4, "a gap of 4 MB is an end");
    assert_eq!(
        moved_memory(ranges, CpuSet::single(0)).bytes(),
        6 * page_bytes()
    );
}

#[test]
fn too_many_ranges_are_joined() {
    let alternating: Vec<usize> = (0..4096).map(|at| at % 2).collect();
    let mut ranges = add_pages(&alternating);
    join_ranges(&mut ranges, 5000);
    assert_eq!(ranges.len(), 4096);
    join_ranges(&mut ranges, 4);
    let nodes: Vec<_> = ranges.iter().map(|range| range.nodes.clone()).collect();
    assert!(nodes.len() <= 4);
    let pages: u64 = nodes.iter().flat_map(BTreeMap::values).sum();
    assert_eq!(pages, 4096);
    assert!(
        nodes.iter().all(|nodes| nodes[&0] == nodes[&1]),
        "{nodes:?}"
    );
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

#[test]
fn each_node_gets_back_its_number_of_pages() {
    let nodes = [(0, 2), (3, 1)].into();
    let given: Vec<usize> = NodeSequence::new(&nodes).collect();
    assert_eq!(given, [0, 0, 3]);
}

#[test]
fn ranges_round_trip() {
    let ranges = [
        page_range(1..3, &[(1, 2)]),
        page_range(4..9, &[(0, 1), (2, 3)]),
    ];
    for range in ranges {
        assert_eq!(PageRange::from_word(&range.to_word()), Some(range));
    }
    for word in [
        "",
        "1-2",
        "1-2:",
        "2-1:0=1",
        "1-2:0=0",
        "1-2:x=1",
        "1-2:0=1+",
        "1-2:99999999=1",
    ] {
        assert_eq!(PageRange::from_word(word), None, "{word}");
    }
}

/// This works wherever this process's pages are.
#[test]
fn own_pages_are_found_and_need_no_move_to_their_nodes() {
    let own = i32::try_from(std::process::id()).unwrap();
    if read_ranges(own).is_none() {
        eprintln!(
            "SKIPPED own_pages_are_found_and_need_no_move_to_their_nodes: no /proc/self/numa_maps"
        );
        return;
    }
    let nowhere = find_ranges(own, &CpuSet::new()).unwrap();
    let bytes = moved_memory(nowhere.clone(), CpuSet::new()).bytes();
    assert!(bytes > 1 << 20, "{nowhere:?}");
    let nodes = nowhere.iter().flat_map(|range| range.nodes.keys());
    let everywhere: CpuSet = nodes.copied().collect();
    assert_eq!(find_ranges(own, &everywhere).unwrap(), []);
    assert!(moved_memory(nowhere, everywhere.clone()).has_moved_pages());
    let beyond = CpuSet::single(CpuSet::MAX_CPU);
    let error = find_ranges(own, &beyond).unwrap_err().to_string();
    assert!(error.contains("allows no memory of node"), "{error}");
    let error = find_ranges(i32::MAX, &everywhere).unwrap_err();
    assert!(matches!(error, LedgerError::Gone(_)), "{error}");
}
