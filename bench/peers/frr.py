"""FRRouting in the switches of a lab, as bench/outages.py has it beside `regatta heal`: eBGP between neighbours with timers of
1 and 3 s, as RFC 7938 would have a CLOS: one AS for all spines of a tier, one for each leaf; with BFD, 3 x 50 ms, if asked.

Debian: package frr (bench/peers/packages.txt). The daemons run inside the lab's namespaces, so `regatta lab down` ends them.
"""
import ipaddress
import json
import pathlib
import shutil
import subprocess
import time

DAEMONS = pathlib.Path("/usr/lib/frr")
FIRST = ipaddress.ip_address("10.64.0.0")


BFD = """bfd
 profile fast
  detect-multiplier 3
  receive-interval 50
  transmit-interval 50
 exit
exit
"""


def is_switch(node):
    return node.startswith(("leaf", "spine", "super"))


class Frr:
    def __init__(self, program, lab, with_bfd):
        self.program, self.lab, self.with_bfd = program, lab["name"], with_bfd
        self.folders = []
        status = json.loads(subprocess.run([program, "lab", "status", self.lab, "--json"], check=True, capture_output=True,
                                           text=True).stdout)
        self.ports = {}  # switch: [(its address, the other end's name, the other end's address)]
        for number, link in enumerate(status["labs"][0]["links"]):
            ends = [link["a"].split()[0], link["b"].split()[0]]
            addresses = [FIRST + 2 * number, FIRST + 2 * number + 1]
            for one, other in ((0, 1), (1, 0)):
                if is_switch(ends[one]):
                    self.ports.setdefault(ends[one], []).append((addresses[one], ends[other], addresses[other]))
        for switch in self.ports:
            self.run(switch, "ip", "route", "flush", "proto", "static")
            self.start(switch)
        self.wait()

    def run(self, switch, *command):
        done = subprocess.run([self.program, "lab", "exec", "--lab", self.lab, switch, "--", *map(str, command)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{switch}: {' '.join(map(str, command))}: {done.stderr.strip()}")
        return done.stdout

    def number(self, switch):
        """The AS: of all spines of a tier the same, so that no way goes down and up again."""
        if switch.startswith("leaf"):
            return 65100 + int(switch[4:])
        return 65000 if switch.startswith("spine") else 65001

    def config(self, switch):
        neighbours = [(other, address) for _, other, address in self.ports[switch] if is_switch(other)]
        lines = [f"hostname {switch}", f"router bgp {self.number(switch)}", f" bgp router-id {self.ports[switch][0][0]}",
                 " no bgp ebgp-requires-policy", " no bgp network import-check", " bgp bestpath as-path multipath-relax", " timers bgp 1 3"]
        for other, address in neighbours:
            lines += [f" neighbor {address} remote-as {self.number(other)}", f" neighbor {address} timers connect 1",
                      f" neighbor {address} advertisement-interval 0"]
            if self.with_bfd:
                lines.append(f" neighbor {address} bfd profile fast")
        lines.append(" address-family ipv4 unicast")
        for own, other, _ in self.ports[switch]:
            if not is_switch(other):
                lines.append(f"  network {ipaddress.ip_network(f'{own}/31', strict=False)}")
        lines += ["  maximum-paths 64", " exit-address-family", "exit", ""]
        return "\n".join(lines)

    def start(self, switch):
        space = f"{self.lab}-{switch}"
        for parent in ("/etc/frr", "/var/run/frr"):
            folder = pathlib.Path(parent) / space
            folder.mkdir(parents=True, exist_ok=True)
            shutil.chown(folder, "frr", "frr")
            self.folders.append(folder)
        etc = pathlib.Path("/etc/frr") / space
        (etc / "zebra.conf").write_text(f"hostname {switch}\n")
        (etc / "bgpd.conf").write_text(self.config(switch))
        (etc / "bfdd.conf").write_text(f"hostname {switch}\n{BFD}")
        for file in etc.iterdir():
            shutil.chown(file, "frr", "frr")
        for daemon in ["zebra"] + (["bfdd"] if self.with_bfd else []) + ["bgpd"]:
            # A daemon that keeps a pipe would keep run() waiting.
            self.run(switch, "sh", "-c", f"exec {DAEMONS / daemon} -d -N {space} -f {etc / daemon}.conf > /dev/null 2>&1")

    def wait(self, limit_s=60):
        """Until each leaf has a route over every spine to each server of the others."""
        leaves = [switch for switch in self.ports if switch.startswith("leaf")]
        servers = {leaf: sum(not is_switch(other) for _, other, _ in self.ports[leaf]) for leaf in leaves}
        ups = {leaf: sum(is_switch(other) for _, other, _ in self.ports[leaf]) for leaf in leaves}
        end = time.monotonic() + limit_s
        missing = leaves
        while missing and time.monotonic() < end:
            time.sleep(0.5)
            missing = [leaf for leaf in leaves if self.whole_routes(leaf, ups[leaf]) < sum(servers.values()) - servers[leaf]]
        if missing:
            raise RuntimeError(f"FRR has no whole routes on {', '.join(missing)} after {limit_s} s")

    def whole_routes(self, leaf, ups):
        routes = json.loads(self.run(leaf, "ip", "-j", "route", "show", "proto", "bgp") or "[]")
        return sum(len(route.get("nexthops", [1])) == ups for route in routes)

    def end(self):
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
