"""Unit tests of examples/gnmi_counters.py: events that are written here by the layout that gnmic documents."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import gnmi_counters  # noqa: E402  (the path is set above)

PORTS = {("leaf0", "Ethernet5"): ("leaf0", "leaf0-spine1"), ("spine1", "Ethernet1"): ("spine1", "leaf0-spine1"),
         ("spine1", "Ethernet2"): ("spine1", "leaf1-spine1")}
STATE = "/interfaces/interface/state/"
LLDP = "/lldp/interfaces/interface/neighbors/neighbor/state/"


def event(at_s, values, source="leaf0:57400", **tags):
    return {"name": "default", "timestamp": at_s * 10**9, "tags": {"source": source, "interface_name": "Ethernet5"} | tags,
            "values": values}


def neighbor(at_s, port, system="spine1.dc1.example", number="1"):
    return event(at_s, {LLDP + "system-name": system, LLDP + "port-id": port}, neighbor_id=number)


class GnmiCounters(unittest.TestCase):
    def setUp(self):
        self.ports = gnmi_counters.GnmicPorts(PORTS)

    def lines(self, *events):
        return [text for one in events for text in self.ports.lines(one)]

    def test_joins_counters_that_come_in_parts(self):
        found = self.lines(
            event(10, {STATE + "counters/out-octets": "2000", STATE + "counters/out-discards": 7}),
            event(11, {STATE + "counters/in-errors": 4}),
            event(11, {STATE + "counters/in-errors": 4}, source="leaf9:57400"))
        self.assertEqual(found, ["10.000,leaf0,leaf0-spine1,,,,,,2000,,7,,,,", "11.000,leaf0,leaf0-spine1,,,,,4,2000,,7,,,,"])

    def test_tells_a_port_whose_counters_stand_still(self):
        again = event(10, {STATE + "counters/in-errors": 4})
        self.assertEqual(len(self.lines(again, again)), 2, "it is well, not silent")

    def test_reads_the_state_of_ports_and_skips_parts_of_them(self):
        self.assertEqual(self.lines(event(10, {STATE + "oper-status": "DOWN"})), ["10.000,leaf0,leaf0-spine1" + "," * 12 + "0"])
        self.assertEqual(self.lines(event(11, {STATE + "oper-status": "UP"})), ["11.000,leaf0,leaf0-spine1" + "," * 12 + "1"])
        self.assertEqual(self.lines(event(12, {"/interfaces/interface/subinterfaces/subinterface/state/oper-status": "DOWN"})), [])

    def test_tells_neighbors_by_the_names_of_the_cluster(self):
        self.assertEqual(self.lines(neighbor(10, "Ethernet2")), ["neighbor,10.000,leaf0,leaf0-spine1,spine1,leaf1-spine1"])

    def test_waits_for_both_names_of_a_neighbor(self):
        self.assertEqual(self.lines(event(10, {LLDP + "system-name": "spine1"}, neighbor_id="1")), [])
        self.assertEqual(self.lines(event(10, {LLDP + "port-id": "Ethernet1"}, neighbor_id="1")),
                         ["neighbor,10.000,leaf0,leaf0-spine1,spine1,leaf0-spine1"])

    def test_tells_a_neighbor_again_when_it_changes_and_now_and_then(self):
        counters = [event(at_s, {STATE + "counters/in-errors": 0}) for at_s in range(11, 75)]
        told = [text.split(",") for text in self.lines(neighbor(10, "Ethernet1"), *counters, neighbor(80, "Ethernet2", number="2"))
                if text.startswith("neighbor")]
        self.assertEqual([(fields[1], fields[5]) for fields in told],
                         [("10.000", "leaf0-spine1"), ("40.000", "leaf0-spine1"), ("70.000", "leaf0-spine1"),
                          ("80.000", "leaf1-spine1")])

    def test_tells_an_unknown_neighbor_as_it_names_itself(self):
        self.assertEqual(self.lines(neighbor(10, "swp1,2", system="tor7")), ["neighbor,10.000,leaf0,leaf0-spine1,tor7,swp1_2"])

    def test_cuts_a_stream_into_events(self):
        stream = ['[{"a": 1}, {"b"', ': 2}]\n{"c": 3}', '\n[', "]"]
        self.assertEqual(list(gnmi_counters.json_events(stream)), [{"a": 1}, {"b": 2}, {"c": 3}])

    def test_takes_no_line_from_a_neighbor_s_name(self):
        found = self.lines(neighbor(10, "swp1\n10,leaf0,leaf0-spine1,,,,,,,,,,,,0", system="tor7"))
        self.assertEqual(len(found), 1)
        self.assertEqual(len(found[0].splitlines()), 1)

    def collect(self, *arguments, events=""):
        return subprocess.run([sys.executable, EXAMPLES / "gnmi_counters.py", *arguments], input=events, text=True,
                              capture_output=True, timeout=20)

    def test_says_in_a_sentence_what_is_wrong_with_its_input(self):
        with tempfile.TemporaryDirectory() as folder:
            ports = pathlib.Path(folder, "ports.csv")
            for content, arguments, events, sentence in [
                    ("", [], "", "required: --ports; see --help"),
                    ("", ["--ports", folder], "", f"--ports {folder}: Is a directory; name a file"),
                    ("", ["--ports", ports.with_name("none")], "", "No such file or directory; name a file"),
                    ("", ["--ports", ports], "", "names no port; write a line for each"),
                    ("leaf0,Ethernet5,leaf0\n", ["--ports", ports], "", f"{ports}:1: write four fields"),
                    ("a,b,c,d\n", ["--ports", ports], "no JSON\n", "standard input: 'no' begins no JSON"),
                    ("a,b,c,d\n", ["--ports", ports], "5\n", "standard input: '5' begins no JSON"),
                    ("a,b,c,d\n", ["--ports", ports], "[" * 100000, "has JSON that no switch writes"),
                    ("a,b,c,d\n", ["--ports", ports], '[{"timestamp"', "ends within a JSON value")]:
                ports.write_text(content)
                done = self.collect(*arguments, events=events)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertTrue(done.stderr.startswith("gnmi_counters: "), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(sentence, done.stderr)

    def test_leaves_out_an_event_that_is_none(self):
        good = event(10, {STATE + "counters/in-errors": 4})
        wrong = [good | {"timestamp": "now"}, good | {"timestamp": None}, good | {"values": [1]}, good | {"tags": 3}, "event", 7,
                 event(10, {STATE + "counters/in-errors": "\u00b2"}), event(10, {STATE + "counters/in-errors": "9" * 5000})]
        with tempfile.TemporaryDirectory() as folder:
            ports = pathlib.Path(folder, "ports.csv")
            ports.write_text("leaf0,Ethernet5,leaf0,leaf0-spine1\n")
            done = self.collect("--ports", ports, events=json.dumps([*wrong, good]))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.splitlines()[1:], ["10.000,leaf0,leaf0-spine1,,,,,4,,,,,,,"])
            self.assertEqual(done.stderr.count("; it is left out\n"), 6, done.stderr)

    def test_ends_in_silence_when_nobody_reads(self):
        with tempfile.TemporaryDirectory() as folder:
            ports = pathlib.Path(folder, "ports.csv")
            ports.write_text("leaf0,Ethernet5,leaf0,leaf0-spine1\n")
            collector = subprocess.Popen([sys.executable, EXAMPLES / "gnmi_counters.py", "--ports", ports], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            collector.stdout.readline()
            collector.stdout.close()
            collector.stdin.write(json.dumps(event(10, {STATE + "counters/in-errors": 4})))
            collector.stdin.close()
            self.assertEqual((collector.stderr.read(), collector.wait()), ("", 0))
            collector.stderr.close()

    def test_reads_standard_input(self):
        with tempfile.TemporaryDirectory() as folder:
            ports = pathlib.Path(folder) / "ports.csv"
            ports.write_text("leaf0,Ethernet5,leaf0,leaf0-spine1\n")
            events = '[{"timestamp": 10000000000, "tags": {"source": "leaf0:57400", "interface_name": "Ethernet5"},\n' \
                     ' "values": {"/interfaces/interface/state/counters/in-errors": 4}}]\n'
            done = self.collect("--ports", ports, events=events)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.splitlines(), [gnmi_counters.HEADING, "10.000,leaf0,leaf0-spine1,,,,,4,,,,,,,"])


if __name__ == "__main__":
    unittest.main()
