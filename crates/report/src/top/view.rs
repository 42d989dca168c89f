//! What the user chose: order, filter, selected thread, typed text.

use std::cmp::Ordering;
use std::time::Duration;

use pinwise_record::{TopRecord, TopThread};

/// The order of threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// CPU time, the most first.
    #[default]
    Cpu,
    /// Migrations, the most first.
    Migrations,
    /// Time queued, the most first.
    Wait,
    /// The CPU they are on.
    Place,
    /// Name.
    Name,
}

impl Order {
    /// All, in the order in which a key cycles through them.
    pub const ALL: [Self; 5] = [
        Self::Cpu,
        Self::Migrations,
        Self::Wait,
        Self::Place,
        Self::Name,
    ];

    /// The next order.
    #[must_use]
    pub fn next(self) -> Self {
        self.step_by(1)
    }

    /// The previous order.
    #[must_use]
    pub fn previous(self) -> Self {
        self.step_by(Self::ALL.len() - 1)
    }

    fn step_by(self, steps: usize) -> Self {
        let place = Self::ALL.iter().position(|order| *order == self);
        Self::ALL[(place.unwrap_or(0) + steps) % Self::ALL.len()]
    }

    /// Its name on the screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Migrations => "migrations",
            Self::Wait => "wait",
            Self::Place => "place",
            Self::Name => "name",
        }
    }

    fn compare(self, a: &TopThread, b: &TopThread) -> Ordering {
        let by = |a: Option<f64>, b: Option<f64>| {
            let (a, b) = (a.unwrap_or(-1.0), b.unwrap_or(-1.0));
            b.total_cmp(&a)
        };
        match self {
            Self::Cpu => by(a.cpu_percent, b.cpu_percent),
            Self::Migrations => by(a.migrations_per_s, b.migrations_per_s),
            Self::Wait => by(a.wait_percent, b.wait_percent),
            Self::Place => {
                let place = |thread: &TopThread| thread.cpu.unwrap_or(u32::MAX);
                place(a).cmp(&place(b))
            }
            Self::Name => a
                .name
                .is_none()
                .cmp(&b.name.is_none())
                .then_with(|| a.name.cmp(&b.name)),
        }
    }
}

/// The half of the screen that arrow keys move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Focus {
    /// The table of threads.
    #[default]
    Threads,
    /// The CPUs, which then get most of the screen.
    Cpus,
}

/// What is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What the text is for.
    pub kind: PromptKind,
    /// The text typed so far.
    pub text: String,
    /// What it would do, or why it cannot.
    pub preview: String,
}

/// What a typed text is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptKind {
    /// The filter.
    Filter,
    /// Pins a thread to CPUs.
    Pin {
        /// The thread.
        thread: i32,
        /// Its name.
        name: String,
    },
}

/// What the user chose.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The order of threads.
    pub order: Order,
    /// Only threads whose name contains this, case-insensitively.
    pub filter: String,
    /// The selected thread; `None` for the first.
    pub chosen: Option<i32>,
    /// The first row of CPUs that is shown.
    pub cpu_top: usize,
    /// The half of the screen that arrow keys move.
    pub focus: Focus,
    /// What is being typed.
    pub prompt: Option<Prompt>,
    /// A message, until the next key.
    pub message: Option<String>,
    /// Is the help shown?
    pub shows_help: bool,
    /// Is the display paused?
    pub is_paused: bool,
    /// Show only ASCII?
    pub ascii: bool,
    /// Time between two frames.
    pub interval: Duration,
    /// The pins that the user set.
    pub pins: Pins,
}

/// The pins that the user set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pins {
    /// Their number.
    pub count: usize,
    /// Do they stay when pinwise quits?
    pub are_kept: bool,
}

impl View {
    /// The threads that match the filter, in order.
    #[must_use]
    pub fn arrange_threads<'a>(&self, record: &'a TopRecord) -> Vec<&'a TopThread> {
        let filter = self.filter.to_lowercase();
        let passes = |thread: &&TopThread| {
            let name = thread.name.as_deref().unwrap_or_default();
            filter.is_empty() || name.to_lowercase().contains(&filter)
        };
        let mut threads: Vec<&TopThread> = record.threads.iter().filter(passes).collect();
        threads.sort_by(|a, b| {
            let order = self.order.compare(a, b);
            order.then(a.thread.cmp(&b.thread))
        });
        threads
    }

    /// The row of the selected thread among the arranged ones.
    #[must_use]
    pub fn find_chosen_row(&self, arranged: &[&TopThread]) -> usize {
        let is_chosen = |thread: &&TopThread| Some(thread.thread) == self.chosen;
        arranged.iter().position(is_chosen).unwrap_or(0)
    }
}
