"""A TCP relay in front of a server; tests can break its connections and refuse new ones."""
import select
import socket
import struct
import threading


class Lossy:
    """Stands in for the server at its own address. From `cut()` to `mend()`, no connection works."""

    def __init__(self, server):
        self._target = (server.host, server.port)
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        self.http = f"http://{self.host}:{self.port}"
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listener.close()

    def cut(self):
        self._open.clear()
        with self._lock:
            for client, server in self._pairs:
                for end in (client, server):
                    try:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        end.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass  # the connection had ended already
            self._pairs.clear()

    def mend(self):
        self._open.set()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._open.is_set():
                client.close()
                continue
            server = socket.create_connection(self._target)
            with self._lock:
                self._pairs.append((client, server))
            threading.Thread(target=self._relay, args=(client, server), daemon=True).start()

    def _relay(self, client: socket.socket, server: socket.socket):
        other = {client: server, server: client}
        try:
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    other[ready].sendall(data)
        except OSError:
            pass
        finally:
            client.close()
            server.close()
