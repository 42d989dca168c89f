//! Lists of nodes: refused, or plain names, each once, that compressed and
//! expanded again are the same.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use pinwise::fleet::hostlist::{MOST_NODES, compress, expand, is_plain};

fuzz_target!(|text: &str| {
    let Ok(nodes) = expand(text) else {
        return;
    };
    assert!(!nodes.is_empty() && nodes.len() <= MOST_NODES);
    assert!(nodes.iter().all(|node| is_plain(node)));
    let set: BTreeSet<&String> = nodes.iter().collect();
    assert_eq!(set.len(), nodes.len());
    let again = expand(&compress(&nodes)).expect("what was compressed is a list");
    assert_eq!(again.iter().collect::<BTreeSet<_>>(), set);
});
