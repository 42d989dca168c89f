/*
 * pinwise: for programs that place their own threads.
 *
 * Discover the machine once, ask how many workers make sense, have places
 * chosen for them, and let each thread bind itself:
 *
 *     PinwiseHost *host = pinwise_host_discover();
 *     PinwisePlaces *places = pinwise_place(host, 0);
 *     ... in thread number i of pinwise_places_threads(places): ...
 *     pinwise_bind(places, i);
 *
 * Functions that fail return NULL or -1, and pinwise_last_error() says why, for
 * the calling thread. Hosts and places do not change and may be used by many
 * threads at once. No function prints, aborts, or reads the environment. A null
 * pointer where one is not allowed is an error, not a crash.
 *
 * The interface has the number PINWISE_INTERFACE, which is that of the shared
 * library, libpinwise.so.0. Within one number, functions and fields at the end
 * of structures may be added, and nothing else changes: callers pass the size of
 * the structure that they know.
 *
 * Written by cbindgen from capi/src/lib.rs.
 */


#ifndef PINWISE_H
#define PINWISE_H

#include <stddef.h>

/*
 Number of this interface.
 */
#define PINWISE_INTERFACE 0

/*
 A machine, and what this process may use of it.
 */
typedef struct PinwiseHost PinwiseHost;

/*
 CPUs that threads take in turn.
 */
typedef struct PinwisePlaces PinwisePlaces;

/*
 How many workers make sense, by what limits them.
 */
typedef struct PinwiseWorkers {
  /*
   Workers that can run at the same time: the CPUs that this process may
   use, or the quota of its cgroups rounded up if that is less.
   */
  size_t parallelism;
  /*
   The same with one worker per physical core.
   */
  size_t on_own_cores;
  /*
   Logical CPUs that this process may use.
   */
  size_t cpus;
  /*
   Physical cores of which this process may use a CPU.
   */
  size_t cores;
  /*
   Last-level-cache domains of those; 0 if no cache is reported.
   */
  size_t llcs;
  /*
   NUMA nodes of those.
   */
  size_t numa_nodes;
  /*
   Packages of those.
   */
  size_t packages;
  /*
   CPUs' worth of time that the quota leaves; 0 without a quota.
   */
  double quota;
} PinwiseWorkers;

/*
 The units that a CPU belongs to, counted from 0; -1 if not reported, or if
 the CPU is offline.
 */
typedef struct PinwiseLocation {
  /*
   Physical core.
   */
  int core;
  /*
   Position among the CPUs of its core: 0 for the first hyper-thread.
   */
  int smt_rank;
  /*
   Last-level cache.
   */
  int llc;
  /*
   The operating system's number of the NUMA node.
   */
  int numa_node;
  /*
   Package.
   */
  int package;
  /*
   1 if the CPU is online.
   */
  int online;
  /*
   1 if this process may run on it.
   */
  int allowed;
} PinwiseLocation;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the library, such as "0.1.0".
 */
const char *pinwise_version(void);

/*
 Why the last failed function on this thread failed; "" if none has. The text
 stays until the next failure on this thread.
 */
const char *pinwise_last_error(void);

/*
 Reads the machine and what the calling thread may use of it: affinity mask,
 cpuset, online CPUs, quotas of cgroups. NULL on failure. Discover before
 threads are bound: a bound thread is allowed only its own CPUs.
 */
struct PinwiseHost *pinwise_host_discover(void);

/*
 Reads a folder with a copy of /sys (and perhaps /proc), for programs that
 test their placement on machines they do not have. NULL on failure.

 # Safety
 `root` is a string that ends with NUL.
 */
struct PinwiseHost *pinwise_host_from_folder(const char *root);

/*
 Frees a host; NULL is allowed. Places stay valid.

 # Safety
 `host` is NULL, or came from this library and was not freed before.
 */
void pinwise_host_free(struct PinwiseHost *host);

/*
 Reports how many workers make sense. `size` is sizeof(PinwiseWorkers).
 Returns 0, or -1 on failure.

 # Safety
 `host` is NULL or a valid host; `workers` is NULL or has room for `size`
 bytes.
 */
int pinwise_host_workers(const struct PinwiseHost *host,
                         struct PinwiseWorkers *workers,
                         size_t size);

/*
 Reports which units a CPU belongs to. `size` is sizeof(PinwiseLocation).
 Returns 0, or -1 on failure or if there is no such CPU.

 # Safety
 `host` is NULL or a valid host; `location` is NULL or has room for `size`
 bytes.
 */
int pinwise_host_locate(const struct PinwiseHost *host,
                        int cpu,
                        struct PinwiseLocation *location,
                        size_t size);

/*
 Chooses a CPU for each of this many threads; 0: as many as make sense. Cores
 come before second hyper-threads, one last-level cache before several. NULL
 on failure.

 # Safety
 `host` is NULL or a valid host.
 */
struct PinwisePlaces *pinwise_place(const struct PinwiseHost *host, size_t threads);

/*
 Chooses CPUs by a placement's name, such as "one-per-core", "one-llc:1" or
 "cpu:0,2-4": what `pinwise compare` found best. NULL if the machine lacks
 what is requested, or forbids it.

 # Safety
 `host` is NULL or a valid host, `placement` NULL or a string that ends with
 NUL.
 */
struct PinwisePlaces *pinwise_place_as(const struct PinwiseHost *host,
                                       const char *placement,
                                       size_t threads);

/*
 Frees places; NULL is allowed. Threads stay bound.

 # Safety
 `places` is NULL, or came from this library and was not freed before.
 */
void pinwise_places_free(struct PinwisePlaces *places);

/*
 The number of threads that places were chosen for; 0 if `places` is NULL.

 # Safety
 `places` is NULL or valid.
 */
size_t pinwise_places_threads(const struct PinwisePlaces *places);

/*
 The CPU of a thread, counted from 0; threads beyond the CPUs start again
 with the first. -1 on failure.

 # Safety
 `places` is NULL or valid.
 */
int pinwise_places_cpu(const struct PinwisePlaces *places, size_t thread);

/*
 Writes all used CPUs, ascending, as many as `capacity` has room for, and
 returns their number; 0 on failure. `cpus` may be NULL if `capacity` is 0.

 # Safety
 `places` is NULL or valid; `cpus` has room for `capacity` numbers.
 */
size_t pinwise_places_cpus(const struct PinwisePlaces *places, int *cpus, size_t capacity);

/*
 Binds the calling thread to the CPU of thread number `thread`. The mask is
 read back. Returns 0, or -1 if the kernel refuses; then the mask is
 unchanged.

 # Safety
 `places` is NULL or valid.
 */
int pinwise_bind(const struct PinwisePlaces *places, size_t thread);

/*
 Confines the calling thread to all of the CPUs, and leaves it to the
 scheduler within them. Returns 0, or -1 as `pinwise_bind`.

 # Safety
 `places` is NULL or valid.
 */
int pinwise_confine(const struct PinwisePlaces *places);

/*
 Restores the mask that the calling thread had before this library first
 bound it, unless someone else has set another since; an unbound thread stays
 as it is. Returns 0, or -1 if the kernel refuses.
 */
int pinwise_unbind(void);

/*
 The CPU that the calling thread is on; -1 if the kernel does not report it.
 */
int pinwise_current_cpu(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PINWISE_H */
