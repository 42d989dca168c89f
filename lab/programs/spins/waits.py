"""Ways to wait in Python. Usage: waits.py WAY SECONDS"""
import queue
import select
import socket
import sys
import threading
import time

way, seconds = sys.argv[1], float(sys.argv[2])
end = time.monotonic() + seconds
held = threading.Lock()
held.acquire()
event, items = threading.Event(), queue.Queue()
near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
near.setblocking(False)


def is_over():
    return time.monotonic() > end


while not is_over():
    if way == "event":
        event.is_set()
    elif way == "try_lock":
        held.acquire(False)
    elif way == "queue":
        try:
            items.get_nowait()
        except queue.Empty:
            pass
    elif way == "receive":
        try:
            near.recv(1)
        except BlockingIOError:
            pass
    elif way == "select":
        select.select([near], [], [], 0)
