"""Unit tests of examples/sflow_counters.py: datagrams that are written here by the specification's layout."""
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import sflow_counters  # noqa: E402  (the path is set above)

PORTS = {("10.0.0.7", "5"): ("leaf0", "leaf0-spine1")}


def interface(index=5, in_bytes=1000, in_drops=3, out_bytes=2000, out_packets=(20, 1, 0), out_drops=7, status=3):
    return struct.pack(">IIQIIQ6IQ6I", index, 6, 100_000_000, 1, status, in_bytes, 10, 0, 0, in_drops, 4, 0,
                       out_bytes, *out_packets, out_drops, 8, 0)


def datagram(records, uptime_ms=5000, expanded=False):
    body = b"".join(struct.pack(">II", kind, len(data)) + data for kind, data in records)
    source = struct.pack(">III", 1, 0, 5) if expanded else struct.pack(">II", 1, 5)
    sample = source + struct.pack(">I", len(records)) + body
    flow = b"\0" * 16  # a sample of packets, which says nothing here
    return (struct.pack(">II4sIIII", 5, 1, socket.inet_aton("10.0.0.7"), 0, 1, uptime_ms, 2) +
            struct.pack(">II", 1, len(flow)) + flow + struct.pack(">II", 4 if expanded else 2, len(sample)) + sample)


class SflowCounters(unittest.TestCase):
    def lines(self, data, wide=None):
        return list(sflow_counters.sflow_lines(PORTS, data, wide or sflow_counters.WideCounters(), 12.5))

    def test_reads_generic_counters_of_both_kinds_of_samples(self):
        for expanded in (False, True):
            data = datagram([(2, b"\0" * 52), (1, interface())], expanded=expanded)
            self.assertEqual(self.lines(data), ["12.500,leaf0,leaf0-spine1,100000000,1000,10,3,4,2000,21,7,8,,,1"])

    def test_says_whether_the_port_is_in_operation(self):
        self.assertEqual(self.lines(datagram([(1, interface(status=1))]))[0].rpartition(",")[2], "0")

    def test_an_interface_has_88_bytes(self):
        self.assertEqual(len(interface()), 88)

    def test_leaves_out_ports_that_are_not_named(self):
        self.assertEqual(self.lines(datagram([(1, interface(index=6))])), [])

    def test_leaves_unknown_counters_empty(self):
        data = datagram([(1, interface(in_drops=2**32 - 1, in_bytes=2**64 - 1))])
        self.assertEqual(self.lines(data), ["12.500,leaf0,leaf0-spine1,100000000,,10,,4,2000,21,7,8,,,1"])

    def test_extends_counters_that_wrap_and_begins_anew_after_a_restart(self):
        wide = sflow_counters.WideCounters()
        self.lines(datagram([(1, interface(out_drops=2**32 - 5))], uptime_ms=5000), wide)
        wrapped = self.lines(datagram([(1, interface(out_drops=3))], uptime_ms=6000), wide)
        self.assertEqual(wrapped[0].split(",")[10], str(2**32 + 3))
        anew = self.lines(datagram([(1, interface(out_drops=1))], uptime_ms=100), wide)
        self.assertEqual(anew[0].split(",")[10], "1")

    def test_any_cut_or_change_of_a_datagram_is_malformed_or_read(self):
        whole = datagram([(1, interface())])
        for end in range(len(whole)):
            with self.assertRaises(sflow_counters.Malformed):
                sflow_counters.read_datagram(whole[:end])
        chance = random.Random(1)
        for _ in range(3000):
            data = bytearray(whole)
            for _ in range(chance.randint(1, 8)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                sflow_counters.read_datagram(bytes(data))
            except sflow_counters.Malformed:
                pass

    def test_says_in_a_sentence_what_is_wrong_with_its_arguments(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            ports = pathlib.Path(folder, "ports.csv")
            ports.write_text("10.0.0.7,5,leaf0,leaf0-spine1\n")
            binary = pathlib.Path(folder, "binary")
            binary.write_bytes(b"\xff\xfe\n")
            taken.bind(("", 0))
            in_use = str(taken.getsockname()[1])
            for arguments, sentence in [
                    (["--ports", ports], "required: --sflow; see --help"),
                    (["--ports", ports, "--sflow", "many"], "invalid int value: 'many'; see --help"),
                    (["--ports", ports, "--sflow", "70000"], "--sflow 70000: a UDP port is from 1 to 65535"),
                    (["--ports", ports, "--sflow", "-1"], "--sflow -1: a UDP port is from 1 to 65535"),
                    (["--ports", ports, "--sflow", in_use], f"--sflow {in_use}: Address already in use; give another port"),
                    (["--ports", binary, "--sflow", "6343"], f"--ports {binary}: is no text; name a file"),
                    (["--ports", ports.with_name("none"), "--sflow", "6343"], "No such file or directory; name a file")]:
                done = subprocess.run([sys.executable, EXAMPLES / "sflow_counters.py", *arguments], text=True,
                                      capture_output=True, timeout=20)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertTrue(done.stderr.startswith("sflow_counters: "), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(sentence, done.stderr)

    def test_receives_datagrams_by_udp(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            ports = pathlib.Path(folder) / "ports.csv"
            ports.write_text("# switch,port,device,link\n10.0.0.7,5,leaf0,leaf0-spine1\n")
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            collector = subprocess.Popen([sys.executable, EXAMPLES / "sflow_counters.py", "--ports", ports, "--sflow", str(port)],
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                self.assertEqual(collector.stdout.readline().strip(), sflow_counters.HEADING)
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                    for data in (b"no datagram", datagram([(1, interface())])):
                        for _ in range(20):  # until it is bound
                            sender.sendto(data, ("127.0.0.1", port))
                self.assertIn(",leaf0,leaf0-spine1,100000000,1000,", collector.stdout.readline())
            finally:
                collector.terminate()
                collector.communicate()


if __name__ == "__main__":
    unittest.main()
