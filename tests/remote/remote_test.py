"""Programs on GPUs of other servers: the pool, copies and order, and everybody's death."""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

from remote_case import BIN, DRIVER, MIB, PROGRAM, RemoteCase, free_port, kill


class Pool(RemoteCase):
    def test_shows_what_is_free_and_starts_programs_where_they_fit_best(self):
        small, large = self.server("small", "128MiB"), self.server("large", "256MiB")
        both = (large, small)
        shown = json.loads(self.pool(both, "ls", "--json").stdout)
        self.assertEqual([(gpu["server"], gpu["memory_free_bytes"], gpu["tenants"]) for gpu in shown["gpus"]],
                         [(large.address, 256 * MIB, 0), (small.address, 128 * MIB, 0)])
        self.assertEqual(shown["unreachable"], [])
        held = self.hold(both)
        self.assertEqual([tenant["name"] for tenant in small.tenants()], ["held"])
        self.assertEqual(large.tenants(), [])
        done = self.run_program(both, "copy", memory="100MiB")  # 64 MiB are free of the small one
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        shown = json.loads(self.pool(both, "ls", "--json").stdout)
        self.assertEqual([(gpu["memory_free_bytes"], gpu["compute_free_percent"]) for gpu in shown["gpus"]],
                         [(256 * MIB, 100.0), (64 * MIB, 90.0)])
        done = self.run_program(both, "copy", memory="300MiB")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn(f"the largest slice that fits is 256 MiB and 10 %, on GPU 0 of {large.address}", done.stderr)
        held.stdin.close()
        held.wait(timeout=20)
        self.wait_for(lambda: not small.tenants())

    def test_refuses_a_wrong_token_in_one_sentence(self):
        server = self.server()
        with open(self.token, "w") as file:
            file.write("another token of the tests\n")
        for words in (("run", "--memory", "2MiB", "--", "true"), ("ls",)):
            done = self.pool([server], *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
            self.assertRegex(done.stderr, "^regatta: .*the token is not this server's")

    def test_refuses_limits_as_the_servers_own_commands_do(self):
        server = self.server()
        for words, said in ((("--name", "a b", "--compute", "10"), "tenant 'a b': a name has"), ((), "give --compute"),
                            (("--compute", "130"), "--compute: '130' is no percentage"), (("--memory", "1KiB"), "--memory: "),
                            (("--compute", ""), "--compute: "), (("--name", "",), "--name: ")):
            memory = () if "--memory" in words else ("--memory", "2MiB")
            done = self.pool([server], "run", *memory, *words, "--", "true")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(said, done.stderr)
        self.hold([server])
        done = self.pool([server], "run", "--name", "held", "--memory", "2MiB", "--compute", "10", "--", "true")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("tenant held: is there already", done.stderr)

    def test_takes_tcp_where_there_is_no_rdma_and_says_why(self):
        server = self.server(words=["--plain"])
        listing = self.pool([server], "--plain", "ls", "--json").stdout
        self.assertEqual([gpu["rdma"] for gpu in json.loads(listing)["gpus"]], [False])
        for way, said in (("auto", ": TCP: no active RoCEv2 port"), ("tcp", ": TCP\n")):
            done = self.pool([server], "--plain", "run", "--memory", "64MiB", "--compute", "10", "--transport", way, "--verbose", "--",
                             *PROGRAM, "copy")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
            self.assertIn(f"regatta: {server.address}{said}", done.stderr)

    def test_refuses_rdma_that_is_not_there_in_one_sentence(self):
        server = self.server(words=["--plain"])
        for words in (("--transport", "rdma"), ("--rdma-address", "the-nic"), ("--transport", "udp")):
            done = self.pool([server], "--plain", "run", "--memory", "2MiB", "--compute", "10", *words, "--", "true")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.wait_for(lambda: not server.tenants())
        done = self.pool([server], "--plain", "run", "--memory", "2MiB", "--transport", "rdma", "--", "true")
        self.assertIn("no server of the pool has an RDMA device", done.stderr)
        done = subprocess.run([BIN / "regatta", "gpu", "serve", "--listen", f"127.0.0.1:{free_port()}", "--token-file", self.token,
                               "--plain", "--rdma-address", "127.0.0.1"], capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)

    def test_wants_a_token_that_nobody_else_can_read(self):
        os.chmod(self.token, 0o644)
        short = self.folder + "/short"
        with open(short, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("short\n")
        for path, said in ((self.token, "chmod 600"), (self.folder, "is no file; name"), ("/dev/null", "is no file; name"),
                           (self.folder + "/none", "there is no such file; make one"), (short, "has 5 letters"),
                           (self.token + "/x", "not a directory; name a file"), ("", "--token-file: the text is empty")):
            done = subprocess.run([BIN / "regatta", "gpu", "pool", "--servers", "127.0.0.1:1", "--token-file", path, "ls"],
                                  capture_output=True, text=True, timeout=30)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(said, done.stderr)

    def test_wants_a_token_of_its_own_that_is_not_blank(self):
        blank = self.folder + "/blank"
        with open(blank, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(" " * 30 + "short\n")
        cases = [(blank, "has 5 letters besides blanks, and a token at least 16")]
        if os.geteuid() == 0:
            of_another = self.folder + "/of-another"
            shutil.copy2(self.token, of_another)
            os.chown(of_another, 65534, 65534)
            cases.append((of_another, "belongs to another user; take a copy of your own"))
        for path, said in cases:
            done = subprocess.run([BIN / "regatta", "gpu", "pool", "--servers", "127.0.0.1:1", "--token-file", path, "ls"],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)

    def test_takes_servers_and_token_behind_the_command_too(self):
        server = self.server()
        done = subprocess.run([BIN / "regatta", "gpu", "pool", "run", "--servers", server.address, "--memory", "64MiB",
                               "--compute", "10", "--token-file", self.token, "--", *PROGRAM, "copy"],
                              capture_output=True, text=True, timeout=90)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def serve(self, *words, **environment):
        return subprocess.run([BIN / "regatta", "gpu", "serve", "--token-file", self.token, *words], capture_output=True,
                              text=True, timeout=30, env={**os.environ, **environment})

    def test_lends_nothing_without_a_daemon_or_a_driver_or_a_free_port(self):
        done = self.serve("--listen", "127.0.0.1:0", "--socket", self.folder + "/none")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("start it with regatta gpu daemon", done.stderr)
        server = self.server()
        for words, status, said in ((("--listen", "127.0.0.1:0", "--driver", "libnone.so"), 2, "name another with --driver"),
                                    (("--listen", "127.0.0.1:0", "--driver", "libm.so.6"), 2, "is no CUDA driver"),
                                    (("--listen", server.address, "--driver", DRIVER), 1, "; choose an address"),
                                    (("--listen", "192.0.2.1:7000", "--driver", DRIVER), 2, "; choose an address"),
                                    (("--listen", "127.0.0.1", "--driver", DRIVER), 2, "give a host and a port"),
                                    (("--listen", "", "--driver", DRIVER), 2, "--listen: the text is empty")):
            done = self.serve("--socket", server.daemon_socket, *words)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), done.stderr)
            self.assertIn(said, done.stderr)

    def test_tells_the_port_that_the_system_chose(self):
        server = self.server()
        second = subprocess.Popen([BIN / "regatta", "gpu", "serve", "--listen", "127.0.0.1:0", "--token-file", self.token,
                                   "--socket", server.daemon_socket, "--driver", DRIVER], stderr=subprocess.PIPE, text=True)
        self.addCleanup(second.wait)
        self.addCleanup(second.kill)
        self.addCleanup(second.stderr.close)
        address, = re.findall(r"127\.0\.0\.1:[0-9]+", second.stderr.readline())
        self.assertEqual(self.pool([address], "ls").returncode, 0)

    def test_tells_of_servers_that_do_not_answer(self):
        server = self.server()
        gone = f"127.0.0.1:{free_port()}"
        done = self.pool([server, gone], "ls")
        self.assertEqual(done.returncode, 0)
        self.assertIn("256 MiB", done.stdout)
        self.assertRegex(done.stderr, f"^regatta: {gone}: nobody answers there")
        done = self.pool([gone], "ls")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1))

    def test_refuses_tickets_that_it_never_gave_and_other_builds(self):
        host, port = self.server(words=["--plain"]).address.split(":")
        for ask, mark, why in (({"request": "join", "ticket": "0" * 32, "key": "x", "connection": 1}, 0, b"the reservation is over"),
                               ({"request": "open", "ticket": "0" * 32, "table": "1"}, 2, b"another build"),
                               ({"request": "reserve", "token": ""}, 2, b"the token is not")):
            text = json.dumps(ask).encode()
            with socket.create_connection((host, int(port)), timeout=10) as one:
                one.sendall(struct.pack("<II", len(text), 1) + text)
                answer = one.recv(4096)
            self.assertEqual(struct.unpack("<II", answer[:8]), (len(answer) - 8, mark))
            self.assertIn(why, answer)

    def test_hears_no_noise(self):
        for words in ([], ["--plain"]):
            server = self.server(f"noise{len(words)}", words=words)
            host, port = server.address.split(":")
            for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 5000, b"\x05\0\0\0\x01\0\0\0hello"):
                with socket.create_connection((host, int(port)), timeout=10) as one:
                    with contextlib.suppress(OSError):  # the server may hang up at any of these
                        one.sendall(noise)
                        one.shutdown(socket.SHUT_WR)
                        one.recv(4096)
            self.assertEqual(self.pool([server], *words, "ls").returncode, 0)

    def test_encrypts_unless_both_ends_are_told_not_to(self):
        closed, plain = self.server("closed"), self.server("plain", words=["--plain"])
        self.assertEqual(self.pool([plain], "--plain", "run", "--memory", "64MiB", "--compute", "10", "--",
                                   *PROGRAM, "copy").returncode, 0)
        for server, words in ((closed, ["--plain"]), (plain, [])):
            done = self.pool([server], *words, "ls")
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("--plain", done.stderr)
        for words in (["--transport", "rdma"], ["--rdma-address", "10.0.0.1"]):
            done = self.pool([closed], "run", "--memory", "64MiB", *words, "--", "true")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{words[0]}{' rdma' if words[1] == 'rdma' else ''}: RDMA is not encrypted; add --plain", done.stderr)

    def test_is_not_locked_out_by_slow_connections(self):
        for words in ([], ["--plain"]):
            server = self.server(f"slow{len(words)}", words=words)
            host, port = server.address.split(":")
            slow = []
            for _ in range(400):
                one = socket.socket()
                self.addCleanup(one.close)
                one.bind(("127.0.0.2", 0))
                one.connect((host, int(port)))
                slow.append(one)
            began = time.monotonic()
            self.assertEqual(self.pool([server], *words, "ls").returncode, 0)
            self.assertLess(time.monotonic() - began, 2)
            # A letter now and then does not begin the time anew.
            held = slow[0]
            with contextlib.suppress(OSError):
                while time.monotonic() - began < 20:
                    held.send(b"\x16")
                    held.settimeout(0.25)
                    with contextlib.suppress(TimeoutError):
                        if not held.recv(100):
                            break
            self.assertLess(time.monotonic() - began, 8)

    def ask_to_show(self, server):
        """A connection that has said what it wants."""
        host, port = server.address.split(":")
        one = socket.create_connection((host, int(port)), timeout=20)
        self.addCleanup(one.close)
        text = json.dumps({"request": "show", "token": "a token of the tests"}).encode()
        one.sendall(struct.pack("<II", len(text), 1) + text)
        return one

    def is_answered(self, one):
        try:
            return len(one.recv(8)) == 8
        except ConnectionError:
            return False

    def test_counts_no_connection_that_waits_for_its_answer(self):
        server = self.server(words=["--plain"])
        os.kill(server.daemon.pid, signal.SIGSTOP)
        asking = [self.ask_to_show(server) for _ in range(80)]
        time.sleep(0.5)
        os.kill(server.daemon.pid, signal.SIGCONT)
        self.assertEqual(sum(self.is_answered(one) for one in asking), 80)

    def test_goes_on_where_it_can_have_no_more_threads(self):
        server = self.server(words=["--plain"])
        with open(f"/proc/{server.serve.pid}/statm", encoding="utf-8") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        host, port = server.address.split(":")
        _, most = resource.prlimit(server.serve.pid, resource.RLIMIT_AS)
        resource.prlimit(server.serve.pid, resource.RLIMIT_AS, (size + 4 * MIB, most))
        for _ in range(60):
            one = socket.create_connection((host, int(port)), timeout=10)
            self.addCleanup(one.close)
        one.settimeout(3)  # less than a request may take to come
        with contextlib.suppress(ConnectionError):
            self.assertEqual(one.recv(1), b"")
        self.assertIsNone(server.serve.poll())
        resource.prlimit(server.serve.pid, resource.RLIMIT_AS, (most, most))
        self.assertTrue(self.is_answered(self.ask_to_show(server)))

    @unittest.skipUnless(os.geteuid() == 0, "only the host processes of root's server change their user")
    def test_has_host_processes_with_no_rights(self):
        server = self.server()
        self.hold([server])
        for pid in server.host_processes():
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                status = dict(re.findall(r"(\w+):\s*(.*)", file.read()))
            self.assertEqual(status["Uid"].split(), ["65534"] * 4)
            self.assertEqual((status["CapEff"], status["NoNewPrivs"], status["Seccomp"]), ("0" * 16, "1", "2"))
        done = self.serve("--socket", server.daemon_socket, "--listen", "127.0.0.1:0", "--driver", DRIVER, "--user", "root")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--user: root: is root; name one that owns nothing", done.stderr)


class Programs(RemoteCase):
    def expect_good(self, *words, **environment):
        done = self.run_program([self.server()], *words, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_get_back_what_they_copied(self):
        self.expect_good("copy")

    def test_see_one_order_over_all_their_threads(self):
        self.expect_good("order")

    @unittest.skipIf(os.environ.get("REGATTA_SANITIZER"), "holds the program to a time")
    def test_need_not_ask_for_a_launch_to_begin(self):
        self.expect_good("start_soon")

    def test_get_the_error_of_a_launch_from_the_next_call_that_waits(self):
        self.assertEqual(self.expect_good("late_errors"), "0 0 1 0 0 1 0\n")

    def test_get_the_error_at_once_where_launches_block(self):
        words = self.expect_good("late_errors", CUDA_LAUNCH_BLOCKING="1").split()
        self.assertEqual(words[:6], ["1", "1", "0", "0", "1", "0"])
        self.assertNotEqual(words[6], "0")

    def test_wait_for_a_server_that_is_busy(self):
        self.expect_good("crowd")

    def test_cannot_forge_handles(self):
        self.assertEqual(self.expect_good("forge"), "400 400 400 400 201 0\n")

    def test_go_on_while_another_thread_is_slow_to_join(self):
        cable = Cable(self, self.server().address)
        held = self.hold([cable], program="hold_beside_a_beginner")
        cable.delay = 4
        self.assertEqual(self.ask(held), ["0", "soon"])
        # Its own thread has its own answer: there is no context in it.
        self.assertEqual(self.ask(held), ["201"])

    def test_share_a_slice_with_the_programs_that_they_start(self):
        server = self.server()
        two = " & ".join([" ".join(PROGRAM) + " copy"] * 2) + "; wait $!"
        done = self.pool([server], "run", "--memory", "64MiB", "--compute", "10", "--", "sh", "-c", two)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.wait_for(lambda: not server.tenants())

    @unittest.skipUnless((BIN / "libregatta_gpu.so").exists(), "the library that keeps quotas is not built")
    def test_get_no_more_memory_than_their_slice(self):
        server = self.server()
        self.assertEqual(self.run_program([server], "show_free").stdout, f"{64 * MIB}\n")
        done = self.run_program([server], "hold", "65")
        self.assertEqual((done.returncode, done.stderr), (1, "cuMemAlloc_v2: 2\n"))

    def test_have_no_driver_in_a_child_of_fork(self):
        self.assertEqual(self.expect_good("forked"), "3 0\n")

    def test_are_told_what_is_missing_without_a_reservation(self):
        environment = {**os.environ, "LD_PRELOAD": str(BIN / "libregatta_gpu_remote.so")}
        environment.pop("REGATTA_GPU_SERVER", None)
        done = subprocess.run([*PROGRAM, "copy"], env=environment, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertIn("start the program with regatta gpu pool run", done.stderr)
        self.assertIn("cuInit: 100", done.stderr)


class Deaths(RemoteCase):
    def test_a_killed_program_leaves_nothing(self):
        server = self.server()
        before = server.free_memory()
        for _ in range(3):
            held = self.hold([server])
            self.assertEqual(server.free_memory(), before - 32 * MIB)
            held.kill()
            held.wait()
            self.wait_for(lambda: not server.tenants())
            self.assertEqual(server.free_memory(), before)

    def test_a_killed_host_process_ends_no_other_program(self):
        server = self.server()
        held = self.hold([server])
        (pid,) = server.host_processes()
        other = self.start(self.pool_words([server], "run", "--name", "other", "--memory", "64MiB", "--compute", "10", "--",
                                           *PROGRAM, "hold", "1"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(other.stdout.readline(), "ready\n")
        kill(pid)
        self.expect_lost_soon(held)
        self.assertEqual(self.ask(other), ["0", "soon"])

    def test_a_killed_server_ends_no_program(self):
        server = self.server()
        before = server.free_memory()
        held = self.hold([server])
        server.serve.kill()
        # Its host processes end by themselves, a moment later: until then they answer.
        self.wait_for(lambda: server.free_memory() == before)
        self.expect_lost_soon(held)

    def test_a_cut_connection_ends_no_program_and_frees_its_memory(self):
        server = self.server()
        before = server.free_memory()
        cable = Cable(self, server.address)
        held = self.hold([cable])
        self.assertEqual(self.ask(held), ["0", "soon"])
        cable.cut()
        self.expect_lost_soon(held)
        self.wait_for(lambda: server.free_memory() == before)


@unittest.skipUnless(os.geteuid() == 0, "a network of its own needs root")
class Silence(RemoteCase):
    """Nothing comes back any more, and nobody says so: the network of this test is its own."""

    def test_a_silent_server_is_lost_soon(self):
        if os.environ.get("REGATTA_OWN_NETWORK") != "1":
            done = subprocess.run(["unshare", "--net", sys.executable, __file__, "Silence"],
                                  env={**os.environ, "REGATTA_OWN_NETWORK": "1"}, capture_output=True, text=True, timeout=100)
            if "unshare failed" in done.stderr or "Operation not permitted" in done.stderr:
                self.skipTest("no network of its own can be had here")
            self.assertEqual(done.returncode, 0, done.stderr)
            return
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        held = self.hold([self.server()])
        self.assertEqual(self.ask(held), ["0", "soon"])
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
        self.expect_lost_soon(held)


class Cable:
    """Carries connections to a server until it is cut; new ones after a delay."""

    def __init__(self, case, server):
        self.to = server.split(":")
        self.ends, self.is_cut, self.delay = [], False, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        case.addCleanup(self.cut)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.is_cut:
            try:
                near, _ = self.listener.accept()
                time.sleep(self.delay)
                far = socket.create_connection((self.to[0], int(self.to[1])))
            except OSError:
                return
            self.ends += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one, other):
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        self.is_cut = True
        for end in [self.listener, *self.ends]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


class RuntimeLibrary(RemoteCase):
    def test_of_nvidia_takes_no_driver_that_forwards_and_says_so_at_once(self):
        program, library = BIN / "regatta-test-cudart", BIN.parent / "third_party" / "cuda-runtime"
        if not program.exists() or not (library / "libcudart.so.11.0").exists():
            self.skipTest(f"no libcudart.so.11.0 in {library}; scripts/cuda-runtime.sh fetches it")
        done = self.pool([self.server()], "run", "--memory", "64MiB", "--compute", "10", "--", program,
                         LD_LIBRARY_PATH=str(library))
        self.assertEqual((done.returncode, done.stderr), (77, ""))
        self.assertRegex(done.stdout, "^not run: the library takes no driver here: [0-9]+, [a-z ]+\n$")


if __name__ == "__main__":
    unittest.main()
