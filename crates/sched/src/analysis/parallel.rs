//! How long two or more followed threads were on CPUs at once: threads that take turns, as at a
//! lock, never are.

/// CPUs with followed threads, and the time with two or more.
#[derive(Debug, Default)]
pub(super) struct Parallel {
    is_used: Vec<bool>,
    used: usize,
    since_ns: u64,
    ns: u64,
}

impl Parallel {
    /// Notes that a CPU starts or stops running followed threads.
    pub(super) fn set(&mut self, cpu: u32, runs_own: bool, now_ns: u64) {
        let cpu = cpu as usize;
        if cpu >= self.is_used.len() {
            self.is_used.resize(cpu + 1, false);
        }
        if self.is_used[cpu] == runs_own {
            return;
        }
        self.advance(now_ns);
        self.is_used[cpu] = runs_own;
        match runs_own {
            true => self.used += 1,
            false => self.used -= 1,
        }
    }

    /// Counts anew; which CPUs are used stays known.
    pub(super) const fn restart(&mut self, now_ns: u64) {
        (self.since_ns, self.ns) = (now_ns, 0);
    }

    /// Counts up to now; returns the total, ns.
    pub(super) const fn advance(&mut self, now_ns: u64) -> u64 {
        if self.used > 1 {
            self.ns += now_ns.saturating_sub(self.since_ns);
        }
        self.since_ns = now_ns;
        self.ns
    }
}
