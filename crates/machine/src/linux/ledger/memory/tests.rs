//! Pieces of memory: found, written down, read again, and given back.

use super::*;

fn piece(range: std::ops::Range<u64>, nodes: &[(usize, u64)]) -> PageRange {
    let page = page_bytes();
    PageRange {
        start: range.start * page,
        end: range.end * page,
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

fn all(nodes: &[usize]) -> Vec<PageRange> {
    let mut pieces = Vec::new();
    for (at, &node) in nodes.iter().enumerate() {
        add(&mut pieces, at as u64 * page_bytes(), node);
    }
    pieces
}

#[test]
fn neighbours_on_a_node_are_a_piece() {
    let pieces = all(&[1, 1, 1, 0, 1]);
    let expected = [
        piece(0..3, &[(1, 3)]),
        piece(3..4, &[(0, 1)]),
        piece(4..5, &[(1, 1)]),
    ];
    assert_eq!(pieces, expected);
    let mut pieces = pieces;
    add(&mut pieces, 6 * page_bytes(), 1);
    assert_eq!(pieces.last().unwrap(), &piece(4..7, &[(1, 2)]));
    add(&mut pieces, (7 + 1000) * page_bytes(), 1);
    assert_eq!(pieces.len(), 4, "a gap of 4 MB is an end");
    assert_eq!(
        moved_memory(pieces, CpuSet::single(0)).bytes(),
        6 * page_bytes()
    );
}

#[test]
fn too_many_pieces_become_shares() {
    let alternating: Vec<usize> = (0..4096).map(|at| at % 2).collect();
    let mut pieces = all(&alternating);
    coarsen(&mut pieces, 5000);
    assert_eq!(pieces.len(), 4096);
    coarsen(&mut pieces, 4);
    let nodes: Vec<_> = pieces.iter().map(|piece| piece.nodes.clone()).collect();
    assert!(nodes.len() <= 4);
    let pages: u64 = nodes.iter().flat_map(BTreeMap::values).sum();
    assert_eq!(pages, 4096);
    assert!(
        nodes.iter().all(|nodes| nodes[&0] == nodes[&1]),
        "{nodes:?}"
    );
    assert!(pieces.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

#[test]
fn each_node_gets_back_its_number_of_pages() {
    let nodes = [(0, 2), (3, 1)].into();
    let given: Vec<usize> = Shares::new(&nodes).collect();
    assert_eq!(given, [0, 0, 3]);
}

#[test]
fn words_of_pieces_are_read_again() {
    let pieces = [piece(1..3, &[(1, 2)]), piece(4..9, &[(0, 1), (2, 3)])];
    for piece in pieces {
        assert_eq!(PageRange::from_word(&piece.to_word()), Some(piece));
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

/// Errors and placements of this process's pages, wherever they are.
#[test]
fn own_pages_are_found_and_need_no_move_to_their_nodes() {
    let own = i32::try_from(std::process::id()).unwrap();
    if read_ranges(own).is_none() {
        eprintln!("SKIPPED own_pages_are_found: no /proc/self/numa_maps");
        return;
    }
    let nowhere = find_pieces(own, &CpuSet::new()).unwrap();
    let bytes = moved_memory(nowhere.clone(), CpuSet::new()).bytes();
    assert!(bytes > 1 << 20, "{nowhere:?}");
    let nodes = nowhere.iter().flat_map(|piece| piece.nodes.keys());
    let everywhere: CpuSet = nodes.copied().collect();
    assert_eq!(find_pieces(own, &everywhere).unwrap(), []);
    assert!(moved_memory(nowhere, everywhere.clone()).is_there());
    let beyond = CpuSet::single(CpuSet::MAX_CPU);
    let error = find_pieces(own, &beyond).unwrap_err().to_string();
    assert!(error.contains("allows no memory of node"), "{error}");
    let error = find_pieces(i32::MAX, &everywhere).unwrap_err();
    assert!(matches!(error, LedgerError::Gone(_)), "{error}");
}
