//! A CPU for each thread.

use super::bind::{BindError, Bound, bind};
use super::choose::choose;
use super::host::Host;
use pinwise_placement::{Placement, RealiseError, Wish};
use pinwise_topology::CpuSet;

/// CPUs that threads take in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Never empty.
    order: Vec<usize>,
    cpus: CpuSet,
    threads: usize,
}

impl Host {
    /// A CPU for each of this many threads; 0 means
    /// [`Workers::parallelism`](crate::Workers::parallelism).
    ///
    /// Every physical core gets a thread before any gets a second, the fastest kind of core first,
    /// in the smallest of last-level cache, NUMA node and package that has enough cores, spread
    /// evenly over the caches in it. More threads than CPUs share them in turn. This is a free
    /// starting point, not a result: measure with `pinwise compare`.
    ///
    /// ```
    /// use pinwise_affinity::Host;
    /// use pinwise_topology::Topology;
    ///
    /// let topology = Topology::from_synthetic("package:2 l3:2 core:4 pu:2").unwrap();
    /// let places = Host::from_topology(topology)?.place(4);
    /// // One last-level cache has four cores.
    /// assert_eq!(places.cpus().to_string(), "0,2,4,6");
    /// assert_eq!(places.cpu(1), 2);
    /// # Ok::<(), pinwise_affinity::DiscoverError>(())
    /// ```
    #[must_use]
    pub fn place(&self, threads: usize) -> Places {
        let threads = self.resolve_threads(threads);
        Places::new(choose(self.topology(), threads), threads)
    }

    /// CPUs for this many threads (0 as in [`Host::place`]) by a placement, such as
    /// `"one-per-core".parse()`. Threads take CPUs in the placement's order, which is cut to the
    /// number of threads unless it is `os-default`. Memory policies are not applied. Devices are
    /// not read here: `near:` and `far:` find none.
    ///
    /// # Errors
    /// [`RealiseError`] if the machine lacks what is requested or this process may not use it.
    ///
    /// ```
    /// use pinwise_affinity::Host;
    /// use pinwise_topology::Topology;
    ///
    /// let topology = Topology::from_synthetic("package:2 l3:2 core:4 pu:2").unwrap();
    /// let host = Host::from_topology(topology)?;
    /// let places = host.place_as(&"spread".parse()?, 2)?;
    /// assert_eq!(places.cpus().to_string(), "0,16");
    /// let error = host.place_as(&"cpu:99".parse()?, 1).unwrap_err();
    /// assert!(error.to_string().contains("there is no CPU 99"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn place_as(&self, placement: &Placement, threads: usize) -> Result<Places, RealiseError> {
        let threads = self.resolve_threads(threads);
        let realised = match placement.wish {
            Wish::BestCore => placement.realise(&self.read_ranked()),
            _ => placement.realise(self.topology()),
        };
        let mut order = realised?.order;
        if placement.wish != Wish::OsDefault {
            order.truncate(threads);
        }
        Ok(Places::new(order, threads))
    }

    fn resolve_threads(&self, requested: usize) -> usize {
        match requested {
            0 => self.workers().parallelism,
            requested => requested,
        }
    }
}

impl Places {
    fn new(order: Vec<usize>, threads: usize) -> Self {
        Self {
            cpus: order.iter().copied().collect(),
            order,
            threads,
        }
    }

    /// The number of threads that the places were chosen for.
    #[must_use]
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// The CPU of a thread, counted from 0. Threads beyond the CPUs start
    /// again with the first.
    #[must_use]
    pub fn cpu(&self, thread: usize) -> usize {
        self.order[thread % self.order.len()]
    }

    /// All used CPUs: the mask for threads that the scheduler may move within it.
    #[must_use]
    pub const fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Binds the calling thread to the CPU of thread number `thread`, until the returned guard is
    /// dropped.
    ///
    /// # Errors
    /// [`BindError`] if the kernel refuses, and why.
    pub fn bind(&self, thread: usize) -> Result<Bound, BindError> {
        bind(&CpuSet::single(self.cpu(thread)))
    }

    /// Confines the calling thread to all of the CPUs, until the returned guard is dropped. For
    /// programs whose threads come and go, this is the safer choice: the scheduler may still
    /// balance them.
    ///
    /// # Errors
    /// [`BindError`] if the kernel refuses, and why.
    pub fn confine(&self) -> Result<Bound, BindError> {
        bind(&self.cpus)
    }
}
