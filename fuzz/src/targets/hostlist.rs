//! Lists of nodes: refused, or plain names, each once, that compressed and
//! expanded again are the same.

use std::collections::BTreeSet;

use pinwise_fleet::hostlist::{MAX_NODES, compress, expand, is_node_name};

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(nodes) = expand(text) else { return };
    assert!(!nodes.is_empty() && nodes.len() <= MAX_NODES);
    assert!(nodes.iter().all(|node| is_node_name(node)));
    let set: BTreeSet<&String> = nodes.iter().collect();
    assert_eq!(set.len(), nodes.len());
    let again = expand(&compress(&nodes)).expect("what was compressed is a list");
    assert_eq!(again.iter().collect::<BTreeSet<_>>(), set);
}
