#!/usr/bin/env python3
"""Writes counters, states and LLDP neighbors of switch ports, as `regatta rates counters` and `regatta probe
--counters` read them (docs/formats/switch_counters.md), from the events that gnmic prints.

    gnmic -a leaf0:57400,leaf1:57400 subscribe --path /interfaces/interface/state \\
      --path /lldp/interfaces/interface/neighbors --stream-mode sample --sample-interval 10s --format event |
      examples/gnmi_counters.py --ports ports.csv > counters.csv

`ports.csv` says which port is which link, a line each: the switch's name in gnmic and as LLDP says it, the name
of its port, and the switch and link of the cluster file; servers that speak LLDP stand there too:

    leaf0,Ethernet5,leaf0,leaf0-spine1
    s0,eth2,s0,s0.nic0-leaf0

Status: tried with events written by the layout that gnmic documents, never with a switch.
Sources: the documentation of gnmic; the OpenConfig models openconfig-interfaces and openconfig-lldp.
"""
import argparse
import json
import sys

from sflow_counters import HEADING, line, read_ports

# The last element of OpenConfig's paths, below .../state and .../state/counters.
COUNTERS = {
    "in-octets": "in_bytes", "in-pkts": "in_packets", "in-discards": "in_drops", "in-errors": "in_errors",
    "out-octets": "out_bytes", "out-pkts": "out_packets", "out-discards": "out_drops", "out-errors": "out_errors",
    "in-mac-pause-frames": "rx_pauses",
}
NEIGHBOR = {"system-name": "system", "port-id": "port"}
AGAIN_S = 30  # a neighbor is told again: its switch may tell it once


class GnmicPorts:
    """The last values of each port and neighbor: an update may have only those that changed."""

    def __init__(self, ports):
        self.ports, self.values, self.neighbors = ports, {}, {}

    def place(self, system, port):
        """The switch and link of a port; a system may give its name with or without its domain."""
        return self.ports.get((system, port)) or self.ports.get((system.split(".")[0], port))

    def lines(self, event):
        tags = event.get("tags") or {}
        place = self.place(str(tags.get("source", "")).rsplit(":", 1)[0], str(tags.get("interface_name", "")))
        if not place:
            return
        at_s = int(event["timestamp"]) / 1e9
        values = {path.rsplit("/", 1)[-1].rsplit(":", 1)[-1]: (path, value)
                  for path, value in (event.get("values") or {}).items()}
        if any("/lldp/" in path or "openconfig-lldp:" in path for path, _ in values.values()):
            self.hear(place, str(tags.get("neighbor_id", "")), values)
        else:
            yield from self.counter_lines(place, at_s, values)
        yield from self.neighbor_lines(place, at_s)

    def counter_lines(self, place, at_s, values):
        counts = self.values.setdefault(place, {})
        is_new = False
        for element, (path, value) in values.items():
            if "/subinterfaces/" in path:
                continue
            if element in COUNTERS and str(value).isdigit():
                counts[COUNTERS[element]], is_new = int(value), True
            elif element == "oper-status":
                counts["up"], is_new = int(str(value).rsplit(":", 1)[-1] == "UP"), True
        if is_new:
            yield line(at_s, *place, None, counts)

    def hear(self, place, number, values):
        # A port has one neighbor; an identifier that was not seen before is another one in its place.
        heard = self.neighbors.setdefault(place, {"number": number})
        if heard["number"] != number:
            heard = self.neighbors[place] = {"number": number}
        for element, (_, value) in values.items():
            if element in NEIGHBOR and heard.get(NEIGHBOR[element]) != str(value):
                heard[NEIGHBOR[element]] = str(value)
                heard.pop("told_s", None)

    def neighbor_lines(self, place, at_s):
        heard = self.neighbors.get(place, {})
        if "system" not in heard or "port" not in heard or at_s < heard.get("told_s", at_s - AGAIN_S) + AGAIN_S:
            return
        heard["told_s"] = at_s
        # One that ports.csv lacks is told as it names itself, so that Regatta says what it does not know.
        name, port = self.place(heard["system"], heard["port"]) or (heard["system"], heard["port"])
        yield ",".join(["neighbor", f"{at_s:.3f}", *place] + [text.replace(",", "_")[:64] for text in (name, port)])


def json_events(stream):
    """The objects of a stream of JSON lists and objects, as they come."""
    decoder, text = json.JSONDecoder(), ""
    for part in stream:
        text = (text + part).lstrip()
        while text:
            try:
                value, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                if len(text) > 1 << 24:
                    raise SystemExit("gnmi_counters: no end of a JSON value in 16 MiB; give gnmic --format event") from None
                break
            yield from value if isinstance(value, list) else [value]
            text = text[end:].lstrip()


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ports", required=True, help="which port is which link")
    ports = GnmicPorts(read_ports(parser.parse_args(arguments).ports))
    print(HEADING, flush=True)
    for event in json_events(sys.stdin):
        for text in ports.lines(event):
            print(text, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (KeyboardInterrupt, BrokenPipeError):
        pass
