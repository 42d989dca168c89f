//! Parts of a profile made into records, and back.

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

    /// As it was.
    #[must_use]
    pub fn amount(&self) -> Amount {
        amount(self.samples, self.cpu_s)
    }
}

fn amount(samples: u64, cpu_s: f64) -> Amount {
    let cpu_ns = whole((cpu_s * 1e9).min(1e18));
    Amount { samples, cpu_ns }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl FunctionRecord {
    pub(super) fn new(time: &FunctionTime, units: f64) -> Self {
        let function = &time.function;
        Self {
            name: function.name.clone(),
            module: some(&function.module),
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
            module: some(&spot.function.module),
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
    /// A function as a tree names it.
    #[must_use]
    pub fn new(function: &Function) -> Self {
        Self {
            name: function.name.clone(),
            module: some(&function.module),
            kind: function.kind.into(),
        }
    }

    /// As it was; of an unknown kind, the program's.
    #[must_use]
    pub fn function(&self) -> Function {
        function(&self.name, self.module.as_deref(), &self.kind)
    }
}

pub(super) fn function(name: &str, module: Option<&str>, kind: &FunctionKind) -> Function {
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
        let call = |node: &pinwise_profile::Node| {
            Some(CallRecord {
                function: functions.binary_search(&node.function).ok()?,
                parent: node.parent,
                samples: node.own.samples,
                cpu_s: node.own.cpu_s(),
            })
        };
        Self {
            nodes: nodes.filter_map(call).collect(),
            functions: functions.iter().map(CalledRecord::new).collect(),
            left_out: AmountRecord::new(left_out, units),
        }
    }

    /// The original tree; `None` if indices lead nowhere.
    #[must_use]
    pub fn tree(&self) -> Option<Tree> {
        let nodes = self.nodes.iter().map(|call| {
            Some(NodeWithoutTotal {
                function: self.functions.get(call.function)?.function(),
                parent: call.parent,
                own: amount(call.samples, call.cpu_s),
            })
        });
        Tree::from_nodes(nodes.collect::<Option<_>>()?)
    }
}
