//! Converts parts of a profile to records, and back.

use super::{
    AmountRecord, CallRecord, CalledRecord, CallsRecord, FunctionKind, FunctionRecord, LineRecord,
    ProfileThread, SpotRecord,
};
use pinwise_format::whole;
use pinwise_profile::{
    Amount, Function, FunctionTime, Kind, Line, NodeWithoutTotal, Spot, ThreadTime, Tree,
};

impl AmountRecord {
    /// An amount, divided by this many units of work.
    #[must_use]
    pub fn new(amount: Amount, units: f64) -> Self {
        Self {
            samples: amount.samples,
            cpu_s: amount.cpu_s(),
            cpu_s_per_unit: (units > 0.0).then(|| amount.cpu_s() / units),
        }
    }

    /// Converts it back.
    #[must_use]
    pub fn to_amount(&self) -> Amount {
        build_amount(self.samples, self.cpu_s)
    }
}

fn build_amount(samples: u64, cpu_s: f64) -> Amount {
    let cpu_ns = whole((cpu_s * 1e9).min(1e18));
    Amount { samples, cpu_ns }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl FunctionRecord {
    pub(super) fn new(time: &FunctionTime, units: f64) -> Self {
        let function = &time.function;
        Self {
            name: function.name.clone(),
            module: non_empty(&function.module),
            kind: function.kind.into(),
            own: AmountRecord::new(time.own, units),
            own_error_s: time.own.error_s(),
            total: AmountRecord::new(time.total, units),
            waits: AmountRecord::new(time.waits, units),
        }
    }
}

impl ProfileThread {
    pub(super) fn new(time: &ThreadTime, units: f64) -> Self {
        Self {
            name: time.name.clone(),
            thread: time.tid,
            threads: time.threads,
            sampled: AmountRecord::new(time.sampled, units),
            waits: AmountRecord::new(time.waits, units),
            cpu_s: time.cpu_s,
        }
    }
}

impl SpotRecord {
    pub(super) fn new(spot: &Spot, units: f64) -> Self {
        Self {
            function: spot.function.name.clone(),
            module: non_empty(&spot.function.module),
            kind: spot.function.kind.into(),
            offset: spot.offset,
            source: spot.source.clone(),
            address: spot.address,
            own: AmountRecord::new(spot.own, units),
            shown: AmountRecord::new(spot.shown, units),
            lines: spot
                .lines
                .iter()
                .map(|l| LineRecord::new(l, units))
                .collect(),
        }
    }
}

impl LineRecord {
    pub(super) fn new(line: &Line, units: f64) -> Self {
        Self {
            address: line.address,
            text: line.text.clone(),
            own: AmountRecord::new(line.own, units),
            is_hint: line.is_hint,
            waits: line.waits,
        }
    }
}

impl CalledRecord {
    /// The record of a function of a call tree.
    #[must_use]
    pub fn new(function: &Function) -> Self {
        Self {
            name: function.name.clone(),
            module: non_empty(&function.module),
            kind: function.kind.into(),
        }
    }

    /// Converts it back; a function of unknown kind becomes the program's.
    #[must_use]
    pub fn to_function(&self) -> Function {
        build_function(&self.name, self.module.as_deref(), &self.kind)
    }
}

pub(super) fn build_function(name: &str, module: Option<&str>, kind: &FunctionKind) -> Function {
    Function {
        name: name.to_owned(),
        module: module.unwrap_or_default().to_owned(),
        kind: match kind {
            FunctionKind::User | FunctionKind::Other(_) => Kind::User,
            FunctionKind::Kernel => Kind::Kernel,
            FunctionKind::Pause => Kind::Pause,
            FunctionKind::LeftOut => Kind::LeftOut,
            FunctionKind::Broken => Kind::Broken,
        },
    }
}

impl CallsRecord {
    pub(super) fn new(tree: &Tree, left_out: Amount, units: f64) -> Self {
        let mut functions: Vec<Function> = tree
            .nodes()
            .iter()
            .map(|node| node.function.clone())
            .collect();
        functions.sort();
        functions.dedup();
        let nodes = tree.nodes().iter();
        let to_call = |node: &pinwise_profile::Node| {
            Some(CallRecord {
                function: functions.binary_search(&node.function).ok()?,
                parent: node.parent,
                samples: node.own.samples,
                cpu_s: node.own.cpu_s(),
            })
        };
        Self {
            nodes: nodes.filter_map(to_call).collect(),
            functions: functions.iter().map(CalledRecord::new).collect(),
            left_out: AmountRecord::new(left_out, units),
        }
    }

    /// Converts it back; `None` if indices are invalid.
    #[must_use]
    pub fn to_tree(&self) -> Option<Tree> {
        let nodes = self.nodes.iter().map(|call| {
            Some(NodeWithoutTotal {
                function: self.functions.get(call.function)?.to_function(),
                parent: call.parent,
                own: build_amount(call.samples, call.cpu_s),
            })
        });
        Tree::from_nodes(nodes.collect::<Option<_>>()?)
    }
}
