"""What a trace says of a program beside what the kernel says of it.

CPU time and switches are those of getrusage, which `xtask used` notes as the
program's parent; threads and the time that they were queued come from taskstats,
which tells each thread's when it exits. The program runs as a user that nobody
else is, by which its threads are known.

Usage: figures.py PINWISE XTASK USER TIER COMMAND…; prints one line of JSON.
"""
import json
import pwd
import socket
import struct
import subprocess
import sys
import threading
import time

NETLINK_GENERIC = 16
SO_RCVBUFFORCE = 33
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK = 1, 3
AGGR_PID, STATS = 4, 3
NLM_F_REQUEST = 1

# Offsets in struct taskstats (include/uapi/linux/taskstats.h).
CPU_DELAY, UID = 24, 120


def attribute(kind, payload):
    data = struct.pack("=HH", 4 + len(payload), kind) + payload
    return data + b"\0" * (-len(data) % 4)


def attributes(data):
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3


def message(family, command, payload):
    body = struct.pack("=BBH", command, 1, 0) + payload
    return struct.pack("=IHHII", 16 + len(body), family, NLM_F_REQUEST, 0, 0) + body


class Exits(threading.Thread):
    """Adds up what is told of a user's threads."""

    def __init__(self, uid):
        super().__init__(daemon=True)
        self.uid = uid
        self.threads = 0
        self.wait_s = 0.0
        self.end = None
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.socket.bind((0, 0))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        name = attribute(CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0")
        self.socket.send(message(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, name))
        answer = self.socket.recv(65536)
        self.family = next(
            struct.unpack("=H", value[:2])[0]
            for kind, value in attributes(answer[20:])
            if kind == CTRL_ATTR_FAMILY_ID
        )
        cpus = open("/sys/devices/system/cpu/possible").read().strip().encode() + b"\0"
        mask = attribute(TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, cpus)
        self.socket.send(message(self.family, TASKSTATS_CMD_GET, mask))
        self.socket.settimeout(0.2)

    def run(self):
        # The last exits are told a moment after the last process is gone.
        while self.end is None or time.monotonic() < self.end:
            try:
                self.take(self.socket.recv(65536))
            except socket.timeout:
                pass

    def take(self, data):
        at = 0
        while at + 20 <= len(data):
            length = struct.unpack_from("=I", data, at)[0]
            if length < 20:
                return
            for kind, value in attributes(data[at + 20 : at + length]):
                if kind == AGGR_PID:
                    for inner, stats in attributes(value):
                        if inner == STATS:
                            self.add(stats)
            at += (length + 3) & ~3

    def add(self, stats):
        if struct.unpack_from("=I", stats, UID)[0] != self.uid:
            return
        self.threads += 1
        self.wait_s += struct.unpack_from("=Q", stats, CPU_DELAY)[0] * 1e-9


def main():
    pinwise, xtask, user, tier, *command = sys.argv[1:]
    exits = Exits(pwd.getpwnam(user).pw_uid)
    exits.start()
    used = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", xtask, "used", "used.json"]
    program = [*used, *command]
    trace = [pinwise, "--store", "none", "--format", "json", "trace", "--tier", tier, "--", *program]
    began = time.monotonic()
    done = subprocess.run(trace, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    exits.end = time.monotonic() + 0.5
    exits.join()
    # What the program printed stands before the record.
    record = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps({
        "kernel": {**json.load(open("used.json")), "wait_s": exits.wait_s, "threads": exits.threads},
        "trace": {
            "cpu_s": record["totals"].get("cpu_s"),
            "wait_s": (record.get("waits") or {}).get("total_s"),
            "switches": record["totals"].get("switches"),
            "threads": record["totals"].get("threads"),
        },
        "at_least": record.get("lower_bounds", []),
        "elapsed_s": time.monotonic() - began,
    }))


main()
