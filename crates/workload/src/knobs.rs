//! Programs that place their own threads, and the setting of each that controls it.
//!
//! A table with its sources. A process is recognised by the name of its program, its environment,
//! its arguments or the files that it has mapped. Nothing is read here, and no setting is changed.

/// A setting by which a program, or its runtime, places its own threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knob {
    /// The program or runtime.
    pub owner: &'static str,
    /// The setting, as it is written.
    pub setting: &'static str,
    /// Its documentation.
    pub source: &'static str,
    /// How to recognise its processes, as in [`KNOBS`].
    signs: &'static str,
}

/// The properties by which a process can be recognised.
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

/// Owner | setting | source | signs: a program, a `$VARIABLE` that is set and not empty, an
/// `-argument` or its part before `=`, or the beginning of a mapped file's name before `*`. The
/// first match is reported: what the user set comes before what a library might do.
const KNOBS: &str = "\
nginx | worker_cpu_affinity (nginx.conf) | nginx.org/en/docs/ngx_core_module.html | nginx openresty angie
Redis | server-cpulist, bio-cpulist (redis.conf) | redis.conf of Redis 6 and newer | redis-server valkey-server keydb-server
HAProxy | cpu-map, cpu-policy (haproxy.cfg) | HAProxy configuration manual, section 3.1 | haproxy
Scylla | --cpuset, --overprovisioned (cpuset.conf) | Seastar's reactor options | scylla redpanda
QEMU | vcpupin (libvirt) or thread-context (QEMU) | libvirt.org/formatdomain.html, CPU tuning | qemu-system-x86_64 qemu-system-aarch64 qemu-kvm
llama.cpp | --cpu-mask, --cpu-range, --cpu-strict | llama.cpp, --help | --cpu-mask -C --cpu-range
stress-ng | --taskset, --change-cpu | stress-ng(1) | stress-ng
likwid-pin | likwid-pin -c | likwid-pin(1) | $LIKWID_PIN liblikwidpin*
LLVM's and Intel's OpenMP | KMP_AFFINITY | openmp.llvm.org/design/Runtimes.html | $KMP_AFFINITY $KMP_HW_SUBSET
GNU OpenMP | GOMP_CPU_AFFINITY | libgomp manual, section 4 | $GOMP_CPU_AFFINITY
OpenMP | OMP_PLACES, OMP_PROC_BIND | OpenMP 5.2, sections 21.1.5 and 21.1.6 | $OMP_PLACES $OMP_PROC_BIND
DPDK | -l, --lcores | DPDK, EAL parameters | --lcores librte_eal* dpdk-testpmd
Seastar | --cpuset, --thread-affinity | Seastar's reactor options | libseastar*
Open MPI | mpirun --bind-to, --map-by | docs.open-mpi.org, mpirun(1) | $OMPI_COMM_WORLD_SIZE mpirun prterun
Slurm | srun --cpu-bind | slurm.schedmd.com/srun.html | $SLURM_CPU_BIND srun
MPICH and Intel MPI | mpiexec -bind-to, I_MPI_PIN | MPICH wiki, Using the Hydra Process Manager | $PMI_SIZE $I_MPI_PIN
the JVM | -XX:+UseNUMA, or an affinity library of the program | the java command's reference | java libjvm.so*";

fn parse_knobs() -> impl Iterator<Item = Knob> {
    KNOBS.lines().map(|row| {
        let mut cells = row.split(" | ");
        let mut cell = || cells.next().unwrap_or_default();
        Knob {
            owner: cell(),
            setting: cell(),
            source: cell(),
            signs: cell(),
        }
    })
}

/// The knob of a process that moved its own threads; `None` if no sign is known.
#[must_use]
pub fn find(signs: &Signs<'_>) -> Option<Knob> {
    parse_knobs().find(|knob| {
        knob.signs
            .split(' ')
            .any(|sign| is_sign_present(sign, signs))
    })
}

fn is_sign_present(sign: &str, signs: &Signs<'_>) -> bool {
    if let Some(name) = sign.strip_prefix('$') {
        return signs.environment.split('\0').any(|entry| {
            let (known, value) = entry.split_once('=').unwrap_or_default();
            known == name && !value.is_empty()
        });
    }
    if let Some(name) = sign.strip_suffix('*') {
        return signs.mappings.lines().any(|line| {
            let file = line.rsplit('/').next().unwrap_or_default();
            line.contains('/') && file.starts_with(name)
        });
    }
    if sign.starts_with('-') {
        let arguments = signs.command_line.split('\0').skip(1);
        let mut names = arguments.map(|text| text.split('=').next().unwrap_or(text));
        return names.any(|argument| argument == sign);
    }
    signs.program.trim_end_matches(" (deleted)") == sign
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    #[track_caller]
    fn check_owner(signs: Signs<'_>, owner: Option<&str>) {
        assert_eq!(find(&signs).map(|knob| knob.owner), owner, "{signs:?}");
    }

    #[test]
    fn programs_are_recognised_by_any_sign() {
        let program = |program| Signs {
            program,
            ..Signs::default()
        };
        check_owner(program("nginx"), Some("nginx"));
        check_owner(program("nginx (deleted)"), Some("nginx"));
        check_owner(program("nginxes"), None);
        check_owner(program("valkey-server"), Some("Redis"));
        let environment = |environment| Signs {
            program: "prog",
            environment,
            ..Signs::default()
        };
        check_owner(environment("A=1\0OMP_PROC_BIND=close\0"), Some("OpenMP"));
        check_owner(environment("A=1\0OMP_PROC_BIND=\0"), None);
        check_owner(environment("NOT_OMP_PROC_BIND=close\0"), None);
        check_owner(
            environment("OMP_PLACES=cores\0GOMP_CPU_AFFINITY=0-3\0"),
            Some("GNU OpenMP"),
        );
        let arguments = |command_line| Signs {
            program: "prog",
            command_line,
            ..Signs::default()
        };
        check_owner(arguments("prog\0--lcores=0-3\0"), Some("DPDK"));
        check_owner(arguments("--lcores\0"), None);
        let mappings = |mappings| Signs {
            program: "prog",
            mappings,
            ..Signs::default()
        };
        check_owner(
            mappings("7f00-7f01 r-xp 0 08:01 5 /usr/lib/librte_eal.so.24\n"),
            Some("DPDK"),
        );
        check_owner(mappings("7f00-7f01 r-xp 0 00:00 0 [librte_eal]\n"), None);
        check_owner(Signs::default(), None);
    }

    #[test]
    fn every_knob_has_its_own_setting_and_a_sign() {
        for (at, knob) in parse_knobs().enumerate() {
            assert!(!knob.signs.is_empty(), "{}", knob.owner);
            assert!(!knob.source.is_empty(), "{}", knob.owner);
            let is_like = |other: Knob| other.owner == knob.owner || other.signs == knob.signs;
            assert!(!parse_knobs().take(at).any(is_like), "{}", knob.owner);
        }
    }

    proptest! {
        /// Any process can be examined, and a program is found by its name among anything else.
        #[test]
        fn any_process_can_be_examined(
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
            assert!(found.is_none_or(|knob| parse_knobs().any(|known| known == knob)));
            assert!(find(&Signs { program: "nginx", ..signs }).is_some_and(|knob| knob.owner == "nginx"));
        }
    }
}
