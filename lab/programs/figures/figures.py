"""What a trace says of a program beside what the kernel says of it.

CPU time and switches are those of getrusage, which `lab used` notes as the
program's parent; threads and the time that they were queued are those of
/proc/PID/schedstat once each thread has ended, which `exits` notes as their tracer.

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
    print(json.dumps({
        "kernel": {**json.load(open("used.json")), **json.load(open("exits.json"))},
        "trace": {
            "cpu_s": totals.get("cpu_s"),
            "wait_s": waits.get("total_s"),
            "switches": totals.get("switches"),
            "threads": totals.get("threads"),
        },
        "causes": waits.get("because") or {},
        "at_least": record.get("lower_bounds", []),
        "at_most": ["queued"] * bool(waits.get("is_upper_bound"))
        + ["cpu_time"] * bool(totals.get("cpu_is_upper_bound")),
    }))


main()
