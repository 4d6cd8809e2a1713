"""Ports for programs that cannot choose one by themselves."""
import os
import socket


def free_port() -> int:
    """A port below those that the system assigns by itself, so that nobody takes it meanwhile."""
    for port in range(20000 + os.getpid() % 5000, 32000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port")
