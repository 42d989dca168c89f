"""What a trace says of a program beside what the kernel says of it.

CPU time and switches are those of getrusage, which `lab used` notes as the
program's parent; threads and the time that they were queued are those of
/proc/PID/schedstat once each thread has ended, which `exits` notes as their tracer.
Both run on, and wait for CPUs, after they have noted that: they are left out of the
kernel's figures, and the trace's figures of these two threads out of the trace's.

Usage: figures.py PINWISE LAB EXITS USER TIER COMMAND…; prints one line of JSON.
"""
import json
import subprocess
import sys


def main():
    pinwise, lab, exits, user, tier, *command = sys.argv[1:]
    program = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    program += [lab, "used", "used.json", exits, "exits.json", *command]
    trace = [pinwise, "--store", "none", "--format", "json", "trace", "--tier", tier, "--", *program]
    done = subprocess.run(trace, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    # What the program printed stands before the record.
    record = json.loads(done.stdout.splitlines()[-1])
    totals, waits = record["totals"], record.get("waits") or {}
    used, ends = json.load(open("used.json")), json.load(open("exits.json"))
    wrappers = [row for row in record["threads"] if row["thread"] in ends["wrappers"]]

    def of_program(total, figure):
        return None if total is None else total - sum(row.get(figure) or 0 for row in wrappers)

    print(json.dumps({
        "kernel": {
            "cpu_s": used["cpu_s"] - ends["own"]["cpu_s"],
            "wait_s": ends["wait_s"],
            "switches": used["switches"] - ends["own"]["switches"],
            "threads": ends["threads"],
        },
        "trace": {
            "cpu_s": of_program(totals.get("cpu_s"), "cpu_s"),
            "wait_s": of_program(waits.get("total_s"), "wait_s"),
            "switches": of_program(totals.get("switches"), "switches"),
            "threads": totals.get("threads") - len(wrappers),
        },
        "causes": waits.get("because") or {},
        "at_least": record.get("lower_bounds", []),
        "at_most": ["queued"] * bool(waits.get("is_upper_bound"))
        + ["cpu_time"] * bool(totals.get("cpu_is_upper_bound")),
    }))


main()
