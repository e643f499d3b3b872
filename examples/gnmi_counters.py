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
import json
import sys

from sflow_counters import ArgumentParser, BadInput, HEADING, Malformed, line, read_ports, run

# The last element of OpenConfig's paths, below .../state and .../state/counters.
COUNTERS = {
    "in-octets": "in_bytes", "in-pkts": "in_packets", "in-discards": "in_drops", "in-errors": "in_errors",
    "out-octets": "out_bytes", "out-pkts": "out_packets", "out-discards": "out_drops", "out-errors": "out_errors",
    "in-mac-pause-frames": "rx_pauses",
}
NEIGHBOR = {"system-name": "system", "port-id": "port"}
DIGITS_MOST = 20  # of a counter of 64 bits
AGAIN_S = 30  # a neighbor is told again: its switch may tell it once


def part(event, name):
    """A part of an event that has names, or none."""
    found = (event.get(name) or {}) if isinstance(event, dict) else None
    if not isinstance(found, dict):
        raise Malformed(f"has no names in {name}")
    return found


def in_a_field(text):
    """A name that its neighbor chose: it begins no field and no line."""
    return "".join(letter if letter.isprintable() and letter != "," else "_" for letter in text)[:64]


def seconds_of(event):
    """The time of an event; gnmic writes nanoseconds."""
    nanoseconds = event.get("timestamp")
    if not isinstance(nanoseconds, int) or not 0 <= nanoseconds < 2**63:
        raise Malformed("has no timestamp in nanoseconds")
    return nanoseconds / 1e9


class GnmicPorts:
    """The last values of each port and neighbor: an update may have only those that changed."""

    def __init__(self, ports):
        self.ports, self.values, self.neighbors = ports, {}, {}

    def place(self, system, port):
        """The switch and link of a port; a system may give its name with or without its domain."""
        return self.ports.get((system, port)) or self.ports.get((system.split(".")[0], port))

    def lines(self, event):
        tags = part(event, "tags")
        place = self.place(str(tags.get("source", "")).rsplit(":", 1)[0], str(tags.get("interface_name", "")))
        if not place:
            return
        at_s = seconds_of(event)
        values = {path.rsplit("/", 1)[-1].rsplit(":", 1)[-1]: (path, value) for path, value in part(event, "values").items()}
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
            if element in COUNTERS and str(value).isdecimal() and len(str(value)) <= DIGITS_MOST:
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
        yield ",".join(["neighbor", f"{at_s:.3f}", *place] + [in_a_field(text) for text in (name, port)])


def json_events(stream):
    """The objects of a stream of JSON lists and objects, as they come."""
    decoder, text = json.JSONDecoder(), ""
    for came in stream:
        text = (text + came).lstrip()
        while text:
            if text[0] not in "[{":
                raise BadInput(f"standard input: {text[:16].split()[0]!r} begins no JSON; give gnmic --format event")
            try:
                value, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                if len(text) > 1 << 24:
                    raise BadInput("standard input: has no end of a JSON value in 16 MiB; give gnmic --format event") from None
                break
            except (RecursionError, ValueError):
                raise BadInput("standard input: has JSON that no switch writes; give gnmic --format event") from None
            yield from value if isinstance(value, list) else [value]
            text = text[end:].lstrip()
    if text:
        raise BadInput("standard input: ends within a JSON value; see what gnmic printed")


def main(arguments):
    parser = ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ports", required=True, metavar="FILE", help="which port is which link")
    ports = GnmicPorts(read_ports(parser.parse_args(arguments).ports))
    sys.stdin.reconfigure(errors="replace")  # a name that is no text is that of no port
    print(HEADING, flush=True)
    for event in json_events(sys.stdin):
        try:
            for text in ports.lines(event):
                print(text, flush=True)
        except Malformed as error:
            print(f"gnmi_counters: an event {error}; it is left out", file=sys.stderr)


if __name__ == "__main__":
    run(main)
