//! Programs that place their own threads, and the setting of each that controls it.
//!
//! Data with its sources, and how to recognise a process: by the name of its program, its
//! environment, its arguments, the files that it has mapped. Nothing is read here, and no setting
//! is changed.

/// A setting by which a program, or its runtime, places its own threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knob {
    /// Whose it is.
    pub owner: &'static str,
    /// The setting, as it is written.
    pub setting: &'static str,
    /// Its documentation.
    pub source: &'static str,
    by: &'static [Sign],
}

/// What a process shows of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signs<'a> {
    /// Name of the executable file, without its folder.
    pub program: &'a str,
    /// Arguments, each ended by a NUL character, as in `/proc/PID/cmdline`.
    pub command_line: &'a str,
    /// `NAME=VALUE`, each ended by a NUL character, as in `/proc/PID/environ`.
    pub environment: &'a str,
    /// `/proc/PID/maps`, or any text with the paths of mapped files.
    pub mappings: &'a str,
}

/// How a knob is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Name of the program.
    Program(&'static str),
    /// Name of a variable that is set and not empty.
    Variable(&'static str),
    /// An argument, or its part before `=`.
    Argument(&'static str),
    /// Prefix of the name of a mapped file.
    Library(&'static str),
}

use Sign::{Argument, Library, Program, Variable};

/// All known ones. The first match is reported: what the user set comes before what a library might
/// do.
const KNOBS: [Knob; 17] = [
    Knob {
        owner: "nginx",
        setting: "worker_cpu_affinity (nginx.conf)",
        source: "nginx.org/en/docs/ngx_core_module.html",
        by: &[Program("nginx"), Program("openresty"), Program("angie")],
    },
    Knob {
        owner: "Redis",
        setting: "server-cpulist, bio-cpulist (redis.conf)",
        source: "redis.conf of Redis 6 and newer",
        by: &[
            Program("redis-server"),
            Program("valkey-server"),
            Program("keydb-server"),
        ],
    },
    Knob {
        owner: "HAProxy",
        setting: "cpu-map, cpu-policy (haproxy.cfg)",
        source: "HAProxy configuration manual, section 3.1",
        by: &[Program("haproxy")],
    },
    Knob {
        owner: "Scylla",
        setting: "--cpuset, --overprovisioned (cpuset.conf)",
        source: "Seastar's reactor options",
        by: &[Program("scylla"), Program("redpanda")],
    },
    Knob {
        owner: "QEMU",
        setting: "vcpupin (libvirt) or thread-context (QEMU)",
        source: "libvirt.org/formatdomain.html, CPU tuning",
        by: &[
            Program("qemu-system-x86_64"),
            Program("qemu-system-aarch64"),
            Program("qemu-kvm"),
        ],
    },
    Knob {
        owner: "llama.cpp",
        setting: "--cpu-mask, --cpu-range, --cpu-strict",
        source: "llama.cpp, --help",
        by: &[
            Argument("--cpu-mask"),
            Argument("-C"),
            Argument("--cpu-range"),
        ],
    },
    Knob {
        owner: "stress-ng",
        setting: "--taskset, --change-cpu",
        source: "stress-ng(1)",
        by: &[Program("stress-ng")],
    },
    Knob {
        owner: "likwid-pin",
        setting: "likwid-pin -c",
        source: "likwid-pin(1)",
        by: &[Variable("LIKWID_PIN"), Library("liblikwidpin")],
    },
    Knob {
        owner: "LLVM's and Intel's OpenMP",
        setting: "KMP_AFFINITY",
        source: "openmp.llvm.org/design/Runtimes.html",
        by: &[Variable("KMP_AFFINITY"), Variable("KMP_HW_SUBSET")],
    },
    Knob {
        owner: "GNU OpenMP",
        setting: "GOMP_CPU_AFFINITY",
        source: "libgomp manual, section 4",
        by: &[Variable("GOMP_CPU_AFFINITY")],
    },
    Knob {
        owner: "OpenMP",
        setting: "OMP_PLACES, OMP_PROC_BIND",
        source: "OpenMP 5.2, sections 21.1.5 and 21.1.6",
        by: &[Variable("OMP_PLACES"), Variable("OMP_PROC_BIND")],
    },
    Knob {
        owner: "DPDK",
        setting: "-l, --lcores",
        source: "DPDK, EAL parameters",
        by: &[
            Argument("--lcores"),
            Library("librte_eal"),
            Program("dpdk-testpmd"),
        ],
    },
    Knob {
        owner: "Seastar",
        setting: "--cpuset, --thread-affinity",
        source: "Seastar's reactor options",
        by: &[Library("libseastar")],
    },
    Knob {
        owner: "Open MPI",
        setting: "mpirun --bind-to, --map-by",
        source: "docs.open-mpi.org, mpirun(1)",
        by: &[
            Variable("OMPI_COMM_WORLD_SIZE"),
            Program("mpirun"),
            Program("prterun"),
        ],
    },
    Knob {
        owner: "Slurm",
        setting: "srun --cpu-bind",
        source: "slurm.schedmd.com/srun.html",
        by: &[Variable("SLURM_CPU_BIND"), Program("srun")],
    },
    Knob {
        owner: "MPICH and Intel MPI",
        setting: "mpiexec -bind-to, I_MPI_PIN",
        source: "MPICH wiki, Using the Hydra Process Manager",
        by: &[Variable("PMI_SIZE"), Variable("I_MPI_PIN")],
    },
    Knob {
        owner: "the JVM",
        setting: "-XX:+UseNUMA, or an affinity library of the program",
        source: "the java command's reference",
        by: &[Program("java"), Library("libjvm.so")],
    },
];

/// The knob of a process that moved its own threads; `None` if it is not known.
#[must_use]
pub fn find(signs: &Signs<'_>) -> Option<&'static Knob> {
    KNOBS
        .iter()
        .find(|knob| knob.by.iter().any(|sign| sign.is_shown(signs)))
}

impl Sign {
    fn is_shown(self, signs: &Signs<'_>) -> bool {
        match self {
            Program(name) => signs.program.trim_end_matches(" (deleted)") == name,
            Variable(name) => signs.environment.split('\0').any(|entry| {
                entry
                    .strip_prefix(name)
                    .and_then(|rest| rest.strip_prefix('='))
                    .is_some_and(|value| !value.is_empty())
            }),
            Argument(name) => {
                let arguments = signs.command_line.split('\0').skip(1);
                let mut names = arguments.map(|text| text.split('=').next().unwrap_or(text));
                names.any(|argument| argument == name)
            }
            Library(name) => signs.mappings.lines().any(|line| {
                let file = line.rsplit('/').next().unwrap_or_default();
                line.contains('/') && file.starts_with(name)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    #[track_caller]
    fn is_known_as(signs: Signs<'_>, owner: Option<&str>) {
        assert_eq!(find(&signs).map(|knob| knob.owner), owner, "{signs:?}");
    }

    #[test]
    fn programs_are_known_by_what_they_show() {
        let program = |program| Signs {
            program,
            ..Signs::default()
        };
        is_known_as(program("nginx"), Some("nginx"));
        is_known_as(program("nginx (deleted)"), Some("nginx"));
        is_known_as(program("nginxes"), None);
        is_known_as(program("valkey-server"), Some("Redis"));
        let environment = |environment| Signs {
            program: "prog",
            environment,
            ..Signs::default()
        };
        is_known_as(environment("A=1\0OMP_PROC_BIND=close\0"), Some("OpenMP"));
        is_known_as(environment("A=1\0OMP_PROC_BIND=\0"), None);
        is_known_as(environment("NOT_OMP_PROC_BIND=close\0"), None);
        is_known_as(
            environment("OMP_PLACES=cores\0GOMP_CPU_AFFINITY=0-3\0"),
            Some("GNU OpenMP"),
        );
        let arguments = |command_line| Signs {
            program: "prog",
            command_line,
            ..Signs::default()
        };
        is_known_as(arguments("prog\0--lcores=0-3\0"), Some("DPDK"));
        is_known_as(arguments("--lcores\0"), None);
        let mappings = |mappings| Signs {
            program: "prog",
            mappings,
            ..Signs::default()
        };
        is_known_as(
            mappings("7f00-7f01 r-xp 0 08:01 5 /usr/lib/librte_eal.so.24\n"),
            Some("DPDK"),
        );
        is_known_as(mappings("7f00-7f01 r-xp 0 00:00 0 [librte_eal]\n"), None);
        is_known_as(Signs::default(), None);
    }

    #[test]
    fn every_knob_has_its_own_setting_and_a_sign() {
        for (at, knob) in KNOBS.iter().enumerate() {
            assert!(!knob.by.is_empty(), "{}", knob.owner);
            assert!(!knob.source.is_empty(), "{}", knob.owner);
            let others = &KNOBS[..at];
            assert!(others.iter().all(|other| other.owner != knob.owner));
            assert!(others.iter().all(|other| other.by != knob.by));
        }
    }

    proptest! {
        /// Any process can be examined, and a program is found by its name among anything else.
        #[test]
        fn whatever_is_shown_is_looked_through(
            program in any::<String>(),
            command_line in any::<String>(),
            environment in any::<String>(),
            mappings in any::<String>(),
        ) {
            let signs = Signs {
                program: &program,
                command_line: &command_line,
                environment: &environment,
                mappings: &mappings,
            };
            let found = find(&signs);
            assert!(found.is_none_or(|knob| KNOBS.contains(knob)));
            assert!(find(&Signs { program: "nginx", ..signs }).is_some_and(|knob| knob.owner == "nginx"));
        }
    }
}
