//! Analyses a loop's instructions, to tell a wait from work.
//!
//! All turns of a wait are alike: nothing that it reads depends on the number of turns. Work differs
//! from turn to turn: a search moves its address, a reduction its sum, a walk its pointer. A counter
//! that only ends the loop is allowed. Instructions are processed once, in the order of their
//! addresses.

use std::collections::{BTreeSet, HashMap, HashSet};

use pinwise_code::{
    Access, Arch, Condition, Flow, Operand, Operation, Owner, Place, Question, Step, Verb,
};

/// Limits the instructions of a loop that only looks.
const MAX_BARE_LOAD_INSTRUCTIONS: usize = 48;

/// Number of the first vector register; those before are general.
const FIRST_VECTOR_REGISTER: u8 = 32;

/// The system call number of `sched_yield`, and the register of system call numbers.
const fn sched_yield_number_and_register(arch: Arch) -> (u64, u8) {
    match arch {
        Arch::X86_64 => (24, 0),
        Arch::Aarch64 => (124, 8),
    }
}

/// Where a value comes from, as seen within one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Origin {
    /// The same in every turn.
    #[default]
    Fixed,
    /// Incremented from turn to turn.
    Counted,
    /// From shared memory.
    Looked,
    /// Computed from earlier turns' results.
    Carried,
}

impl Origin {
    const fn moves(self) -> bool {
        matches!(self, Self::Counted | Self::Carried)
    }

    /// Combines two operands.
    const fn combine(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fixed, one) | (one, Self::Fixed) => one,
            (Self::Counted, Self::Counted) => Self::Counted,
            (Self::Looked, Self::Looked) => Self::Looked,
            _ => Self::Carried,
        }
    }
}

/// The properties of a loop.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// Reads of shared memory, without bounds of counters.
    pub(super) looks: u32,
    /// Atomic instructions.
    pub(super) locked: u32,
    /// System calls.
    pub(super) system_calls: u32,
    /// Is one of them `sched_yield`?
    pub(super) yields: bool,
    /// Does it read the clock?
    pub(super) reads_clock: bool,
    /// Addresses of the looks.
    pub(super) looking: HashSet<u64>,
    /// Does it do more than a wait?
    works: bool,
    /// Does it use values that earlier turns computed?
    pub(super) carries: bool,
    /// Addresses of instructions that use such values, if no general register shows the progress.
    pub(super) hiding: BTreeSet<u64>,
    /// Does it read at a moving address?
    walks: bool,
    /// Does it test what it read?
    tests_read: bool,
}

impl Turn {
    /// Only reads memory or the clock, over and over.
    pub(super) fn is_bare_load(&self, instructions: usize) -> bool {
        let is_tight = instructions <= MAX_BARE_LOAD_INSTRUCTIONS;
        let looks =
            (self.looks > 0 || self.reads_clock) && self.tests_read && self.system_calls == 0;
        is_tight && looks && !self.works
    }

    /// Does it do more than a wait?
    pub(super) const fn works(&self) -> bool {
        self.works
    }
}

/// Processes a loop's instructions.
pub(super) fn analyse_turn(arch: Arch, operations: &[&Operation]) -> Turn {
    let changed = operations
        .iter()
        .flat_map(|one| changed_places(one))
        .collect();
    let mut reader = Reader {
        arch,
        changed,
        origins: HashMap::new(),
        updated: HashSet::new(),
        changing: HashMap::new(),
        carried: HashSet::new(),
        computed: HashSet::new(),
        call_number: None,
        turn: Turn::default(),
    };
    for operation in operations {
        reader.read(operation);
    }
    reader.finish()
}

/// The registers and stack slots that an instruction changes.
fn changed_places(operation: &Operation) -> impl Iterator<Item = Place> {
    let slot = operation.step.and_then(|step| step.to);
    let registers = operation.written.numbers().map(Place::Register);
    registers.chain(slot)
}

/// Does an instruction change a local variable by arithmetic that is not followed here?
fn changes_local(operation: &Operation) -> bool {
    let changes = operation
        .access
        .is_some_and(|access| access.owner == Owner::Stack && access.reads && access.writes);
    changes && operation.step.is_none() && operation.flow == Flow::Next && !operation.is_locked
}

/// Does a general register show the step's result?
fn is_shown(step: &Step) -> bool {
    let is_general = match step.right {
        Operand::Constant(_) => true,
        Operand::At(Place::Register(number)) => number < FIRST_VECTOR_REGISTER,
        Operand::At(Place::Slot { .. }) | Operand::Unknown => false,
    };
    step.verb == Verb::Move && is_general
}

struct Reader {
    arch: Arch,
    /// Places that the loop changes anywhere.
    changed: HashSet<Place>,
    /// Origins of places that this turn has changed so far.
    origins: HashMap<Place, Origin>,
    /// Local variables that are changed other than from a general register.
    updated: HashSet<Place>,
    /// Addresses of the instructions that change a place.
    changing: HashMap<Place, Vec<u64>>,
    /// Places read before this turn changed them.
    carried: HashSet<Place>,
    /// Places that hold results of arithmetic with what this turn read from shared memory.
    computed: HashSet<Place>,
    /// The value of the system call number's register.
    call_number: Option<u64>,
    turn: Turn,
}

impl Reader {
    fn place_origin(&mut self, place: Place) -> Origin {
        if let Some(&origin) = self.origins.get(&place) {
            return origin;
        }
        if self.changed.contains(&place) {
            self.carried.insert(place);
            return Origin::Counted;
        }
        Origin::Fixed
    }

    fn read(&mut self, operation: &Operation) {
        self.note_system_call(operation);
        let shared = operation
            .access
            .filter(|access| access.owner == Owner::Shared);
        if let Some(access) = shared {
            self.note_access(operation, access);
        }
        self.turn.reads_clock |= operation.reads_clock;
        let looks = shared.is_some_and(|access| access.reads) || operation.reads_clock;
        let origin = self.find_origin(operation, looks);
        self.note_condition(operation, origin);
        self.turn.locked += u32::from(operation.is_locked);
        self.turn.works |= matches!(operation.flow, Flow::Call(_));
        let stores = shared.is_some_and(|access| self.stores_result(operation, access));
        let updates = operation.adds_to_memory || changes_local(operation);
        if stores {
            self.turn.hiding.insert(operation.address);
        }
        if updates {
            self.turn.carries = true;
            self.turn.hiding.insert(operation.address);
        }
        if let Some(step) = operation.step.filter(|step| !is_shown(step)) {
            self.updated.extend(step.to);
        }
        let computes = origin == Origin::Looked && self.is_computed(operation);
        for place in changed_places(operation) {
            if computes {
                self.computed.insert(place);
            } else {
                self.computed.remove(&place);
            }
            self.origins.insert(place, origin);
            let changing = self.changing.entry(place).or_default();
            changing.push(operation.address);
        }
    }

    fn note_system_call(&mut self, operation: &Operation) {
        let (number, register) = sched_yield_number_and_register(self.arch);
        if operation.flow == Flow::System {
            self.turn.system_calls += 1;
            self.turn.yields |= self.call_number == Some(number);
        }
        if operation.written.holds(register) {
            self.call_number = match operation.step {
                Some(Step {
                    verb: Verb::Move,
                    right: Operand::Constant(value),
                    ..
                }) => Some(value),
                _ => None,
            };
        }
    }

    fn note_access(&mut self, operation: &Operation, access: Access) {
        let address: Vec<Origin> = access
            .address
            .numbers()
            .map(|register| self.place_origin(Place::Register(register)))
            .collect();
        let walks = address.into_iter().any(Origin::moves);
        self.turn.carries |= walks;
        self.turn.walks |= walks;
        self.turn.works |= access.writes && !operation.is_locked;
        if operation.is_locked && access.writes {
            self.note_update(operation);
        }
        if access.reads {
            self.turn.looks += 1;
            self.turn.looking.insert(operation.address);
        }
    }

    /// Writing back a value that was read is an update, not an attempt to take a lock. CMPXCHG only
    /// compares the accumulator.
    fn note_update(&mut self, operation: &Operation) {
        let accumulator = match self.arch {
            Arch::X86_64 => Some(0),
            Arch::Aarch64 => None,
        };
        let registers = operation.read.numbers().filter(|&r| Some(r) != accumulator);
        let values: Vec<Origin> = registers
            .map(|register| self.place_origin(Place::Register(register)))
            .collect();
        self.turn.works |= values.iter().any(|&origin| origin != Origin::Fixed);
    }

    /// Does an instruction leave a result in shared memory, where the next turn or another thread
    /// finds it? A copy of what was read, such as the cached index of a queue, is none, nor is the
    /// same value in every turn.
    fn stores_result(&mut self, operation: &Operation, access: Access) -> bool {
        if !access.writes || operation.is_locked {
            return false;
        }
        let mut values = operation.read.numbers().map(Place::Register);
        access.reads
            || values
                .any(|place| self.computed.contains(&place) || self.place_origin(place).moves())
    }

    /// Is the result of an instruction more than a copy of a value? That of a locked one is what memory
    /// held.
    fn is_computed(&self, operation: &Operation) -> bool {
        match operation.step {
            _ if operation.is_locked => false,
            Some(Step {
                verb: Verb::Move,
                right: Operand::At(place),
                ..
            }) => self.computed.contains(&place),
            Some(step) => step.verb != Verb::Move,
            None => operation.read.numbers().next().is_some(),
        }
    }

    /// The origin of an instruction's result.
    fn find_origin(&mut self, operation: &Operation, looks: bool) -> Origin {
        let Some(step) = operation.step else {
            return self.combine_origins(operation, looks);
        };
        let (left, right) = match step.verb {
            Verb::Move => (Origin::Fixed, self.operand_origin(step.right, looks)),
            _ => (
                self.operand_origin(step.left, looks),
                self.operand_origin(step.right, looks),
            ),
        };
        let is_bound = step.to.is_none()
            && matches!(
                (left, right),
                (Origin::Counted, Origin::Looked) | (Origin::Looked, Origin::Counted)
            );
        if is_bound {
            // Reading a counter's limit is not a look at a lock.
            self.turn.looks = self.turn.looks.saturating_sub(1);
            return Origin::Counted;
        }
        let is_linear = matches!(step.verb, Verb::Move | Verb::Add | Verb::Subtract);
        match left.combine(right) {
            Origin::Counted if !is_linear && step.to.is_some() => Origin::Carried,
            origin => origin,
        }
    }

    fn operand_origin(&mut self, operand: Operand, looks: bool) -> Origin {
        match operand {
            Operand::Constant(_) => Origin::Fixed,
            Operand::At(place) => self.place_origin(place),
            Operand::Unknown if looks => Origin::Looked,
            Operand::Unknown => Origin::Fixed,
        }
    }

    /// For an instruction whose arithmetic is not followed.
    fn combine_origins(&mut self, operation: &Operation, looks: bool) -> Origin {
        let mut origin = if looks { Origin::Looked } else { Origin::Fixed };
        for register in operation.read.numbers() {
            origin = origin.combine(self.place_origin(Place::Register(register)));
        }
        if let Some(local) = operation.local {
            origin = origin.combine(self.place_origin(local));
        }
        match origin {
            // CMPXCHG compares the memory with the accumulator.
            Origin::Carried if operation.is_locked => Origin::Looked,
            Origin::Counted => Origin::Carried,
            origin => origin,
        }
    }

    fn note_condition(&mut self, operation: &Operation, origin: Origin) {
        self.turn.tests_read |= operation.sets_flags && origin == Origin::Looked;
        let compares = operation.step.is_some_and(|step| step.to.is_none());
        self.turn.works |= compares && origin == Origin::Carried;
        let question = operation
            .condition
            .map(|Condition { question, .. }| question);
        if let Some(Question::Zero(register, _) | Question::BitClear(register, _)) = question {
            let origin = self.place_origin(Place::Register(register));
            self.turn.tests_read |= origin == Origin::Looked;
        }
    }

    fn finish(mut self) -> Turn {
        let carried = self.carried.iter();
        let ends: Vec<(&Place, Origin)> = carried
            .filter_map(|place| Some((place, *self.origins.get(place)?)))
            .collect();
        let is_hidden = |place: &Place| match place {
            Place::Register(number) => *number >= FIRST_VECTOR_REGISTER,
            slot @ Place::Slot { .. } => self.updated.contains(slot),
        };
        let goes_on = |&(_, origin): &(&Place, Origin)| origin == Origin::Carried;
        let in_slot = |(place, origin): &(&Place, Origin)| {
            matches!(place, Place::Slot { .. }) && origin.moves()
        };
        self.turn.carries |= ends.iter().any(goes_on);
        // The address of a walk is in a register for a moment only.
        let walks = self.turn.walks;
        let hidden = ends
            .iter()
            .filter(|end| goes_on(end) && is_hidden(end.0) || walks && in_slot(end));
        let hiding = hidden.filter_map(|(place, _)| self.changing.get(*place));
        self.turn.hiding.extend(hiding.flatten());
        self.turn.works |= self.turn.carries;
        self.turn
    }
}
