"""`regatta run` plans the source ports of its connections: read from the kernels, no two that send at once meet on an uplink."""
import collections
import json
import pathlib
import re
import socket
import struct
import subprocess
import time
import unittest

import lab_case

ESTABLISHED = "01"
PLANNED_FROM = 61000
SPINES = 8


def connections_of(pid):
    """(local address, local port, remote address, remote port) of the established TCP connections in its namespace."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state = line.split()[:4]
        if state != ESTABLISHED:
            continue
        ends = []
        for end in (local, remote):
            address, port = end.split(":")
            ends += [socket.inet_ntoa(struct.pack("<I", int(address, 16))), int(port, 16)]
        found.append(tuple(ends))
    return found


class RunPorts(lab_case.LabCase):
    # Two servers below each of two leaves: the ring of four crosses twice, with as many connections as there are spines.
    fabric = f"tiers: [leaf, spine], servers_per_leaf: 2, spines: {SPINES}, uplink: 100Mbps"

    def setUp(self):
        super().setUp()
        self.cluster.write_text(self.cluster.read_text().replace("count: 3", "count: 4"))
        self.job.write_text(self.job.read_text().replace("global_batch: 6", "global_batch: 8").replace("dp: 3", "dp: 4"))

    def ranks_by_server(self, command):
        """A process of each server, by where its connections begin."""
        found = {}
        for pid in [pid for pid in lab_case.processes() if command in lab_case.command_of(pid)]:
            try:
                addresses = {one[0] for one in connections_of(pid)}
            except OSError:
                continue  # it has ended
            for server, address in self.addresses.items():
                if address in addresses:
                    found[server] = pid
        return found

    def uplink_of(self, leaf, connection):
        """The interface by which the kernel of the leaf sends the connection on."""
        local, local_port, remote, remote_port = connection
        done = lab_case.regatta("lab", "exec", leaf, "--lab", self.name, "--", "ip", "route", "get", remote, "from", local, "iif",
                                self.port_of[local], "ipproto", "tcp", "sport", str(local_port), "dport", str(remote_port))
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.search(r"\bdev (\S+)", done.stdout).group(1)

    def look_at_lab(self):
        status = json.loads(lab_case.regatta("lab", "status", self.name, "--json").stdout)
        lab = status["labs"][0] if "labs" in status else status
        self.addresses = {server["name"]: server["nic_addresses"][0] for server in lab["servers"]}
        self.port_of = {}
        for link in lab["links"]:
            server, port = link["a"].split()[0], link["b"].split()[1]
            if server in self.addresses:
                self.port_of[self.addresses[server]] = port

    def ring_on_uplinks(self, command):
        """How many connections of the ring leave each leaf by each uplink."""
        self.look_at_lab()
        workers = self.ranks_by_server(command)
        self.assertEqual(set(workers), {f"s{i}" for i in range(4)})
        load = collections.Counter()
        for sender, receiver, leaf in (("s1", "s2", "leaf0"), ("s3", "s0", "leaf1")):
            listens = collections.Counter(one[1] for one in connections_of(workers[receiver])
                                          if one[2] == self.addresses[sender])
            for one in connections_of(workers[sender]):
                # Those that this side dialled: the other's listening port takes them all; less the one for control.
                if one[2] == self.addresses[receiver] and listens[one[3]] > 1 and one[1] >= PLANNED_FROM:
                    load[leaf, self.uplink_of(leaf, one)] += 1
        return load

    def test_leads_the_connections_that_send_at_once_over_different_uplinks(self):
        run = self.start()
        self.assertRegex(run.text(), r"ports planned: the switches of a lab hash by known seeds")
        load = self.ring_on_uplinks("regatta-worker train")
        print(f"  connections of the ring by uplink: {sorted(load.values())}")
        self.assertEqual(len(load), 2 * SPINES)
        self.assertEqual(set(load.values()), {1})

    def test_benchmarks_over_planned_ports(self):
        self.assertEqual(lab_case.regatta("lab", "up", self.cluster).returncode, 0)
        self.addCleanup(lab_case.regatta, "lab", "down", self.name)
        self.look_at_lab()
        bench = subprocess.Popen([lab_case.BIN / "regatta", "bench", "coll", "all_reduce", "--ranks", "4", "--sizes", "4M",
                                  "--batches", "1000", "--rounds", "100", "--cluster", self.cluster], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        try:
            servers = {f"s{i}" for i in range(4)}
            self.assertTrue(lab_case.wait_until(lambda: set(self.ranks_by_server("regatta-bench-rank")) == servers, 30))
            time.sleep(2)  # until all have met
            load = self.ring_on_uplinks("regatta-bench-rank")
        finally:
            bench.terminate()
            bench.wait(20)
            bench.stderr.close()
        self.assertEqual(len(load), 2 * SPINES)
        self.assertEqual(set(load.values()), {1})

    def test_benchmarks_refuse_ports_without_a_cluster(self):
        done = lab_case.regatta("bench", "coll", "all_reduce", "--sizes", "1K", "--ports", "planned")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^regatta: --ports: ranks of one machine have no connections; name a cluster with --cluster$")

    def test_says_what_was_taken(self):
        for asked, taken in ((), "planned"), (("--ports", "surveyed"), "surveyed"), (("--ports", "hashed"), "hashed"):
            done = lab_case.regatta("run", self.job, "--cluster", self.cluster, "--steps", "6", "--json", "--no-report", *asked)
            self.assertEqual(done.returncode, 0, done.stderr)
            ports = json.loads(done.stdout)["ports"]
            self.assertEqual(ports["taken"], taken)
            self.assertIn(f"\nports {taken}: ", done.stderr)
            if taken == "planned":
                self.assertEqual(ports["sets"], [{"name": "data-parallel rings", "connections": 2 * SPINES,
                                                  "max_link_connections": 1, "most_on_a_link": 1}])
                self.assertIn(f"data-parallel rings: {2 * SPINES} connections across switches, 1 at most on a link", done.stderr)
            else:
                self.assertEqual(ports["sets"], [])

    def test_plans_around_a_cable_without_carrier(self):
        self.start()
        self.look_at_lab()
        self.fault("down", "leaf0-spine3")
        done = lab_case.regatta("run", self.job, "--cluster", self.cluster, "--steps", "6", "--json", "--no-report")
        self.assertEqual(done.returncode, 0, done.stderr)
        ports = json.loads(done.stdout)["ports"]
        self.assertEqual(ports["avoided"], ["leaf0-spine3"])
        # Eight connections on the seven ways that are left.
        self.assertEqual([one["max_link_connections"] for one in ports["sets"]], [2])

    def test_refuses_to_plan_where_the_hash_is_not_known(self):
        text = self.cluster.read_text().replace("servers: {count: 4, type: cpu-1}", "servers:\n" + "".join(
            f"  - {{name: s{i}, type: cpu-1, address: '127.0.0.1:{7000 + i}'}}\n" for i in range(4)))
        self.cluster.write_text(text)
        done = lab_case.regatta("run", self.job, "--cluster", self.cluster, "--no-report", "--ports", "planned")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1],
                         r"--ports planned: cluster \S+: how the switches of real servers hash is not known; take --ports surveyed$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
