"""TCP proxies before the controller: one cuts connections at a byte, one delivers late."""
import queue
import random
import select
import socket
import threading
import time


class CuttingProxy:
    """`cut_at`: the connection ends after so many bytes of the request (way "up") or of the answer ("down"); None: never. Only the first
    connection after set() is cut; bytes count from the start of the connection, those of TLS included."""

    def __init__(self, host, port):
        self.target = host, port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cut_at, self.way, self.is_cut = None, "up", False
        self.passed = {"up": 0, "down": 0}
        self.ends = False
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def set(self, way, cut_at):
        self.way, self.cut_at, self.is_cut = way, cut_at, False

    def accept(self):
        while not self.ends:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.relay, args=(client,), daemon=True).start()

    def relay(self, client):
        limit, self.cut_at = self.cut_at, None
        way = self.way
        passed = {"up": 0, "down": 0}
        try:
            server = socket.create_connection(self.target)
        except OSError:
            client.close()
            return
        with client, server:
            pairs = {client: (server, "up"), server: (client, "down")}
            while True:
                for source in select.select(list(pairs), [], [], 30)[0]:
                    target, direction = pairs[source]
                    try:
                        data = source.recv(65536)
                        if limit is not None and direction == way and passed[direction] + len(data) >= limit:
                            target.sendall(data[:limit - passed[direction]])
                            self.is_cut = True
                            return
                        if not data:
                            return
                        target.sendall(data)
                    except OSError:
                        return
                    passed[direction] += len(data)
                    self.passed = dict(passed)

    def close(self):
        self.ends = True
        self.listener.close()


class LateProxy:
    """Delivers each piece after `delay` seconds, up to `spread` more or less, and one in `stall_of` a second later still, as TCP does after a loss.
    Pieces stay in their order."""

    def __init__(self, host, port, delay, spread, stall_of, seed=1):
        self.target = host, port
        self.delay, self.spread, self.stall_of = delay, spread, stall_of
        self.random = random.Random(seed)
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
                server = socket.create_connection(self.target)
            except OSError:
                return
            for source, target in ((client, server), (server, client)):
                pieces = queue.Queue()
                threading.Thread(target=self.take, args=(source, pieces), daemon=True).start()
                threading.Thread(target=self.deliver, args=(pieces, target), daemon=True).start()

    def take(self, source, pieces):
        data = b" "
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            late = self.delay + self.random.uniform(-self.spread, self.spread) + (self.random.randrange(self.stall_of) == 0)
            pieces.put((time.monotonic() + late, data))

    @staticmethod
    def deliver(pieces, target):
        while True:
            due, data = pieces.get()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
            except OSError:
                return

    def close(self):
        self.listener.close()
