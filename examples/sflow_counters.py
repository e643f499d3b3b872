#!/usr/bin/env python3
"""Writes counters of switch ports, as `regatta rates counters` reads them (docs/formats/switch_counters.md),
from sFlow version 5 datagrams or from the events that gnmic prints.

    examples/sflow_counters.py --ports ports.csv --sflow 6343 > counters.csv       until Ctrl-C
    gnmic subscribe ... --format event | examples/sflow_counters.py --ports ports.csv --gnmic > counters.csv

`ports.csv` says which port is which link, a line each: the switch's address in sFlow or name in gnmic, the
port's ifIndex or interface name, and the switch and link of the cluster file:

    10.0.0.7,5,leaf0,leaf0-spine1
    leaf0,Ethernet5,leaf0,leaf0-spine1

Sources: sFlow Version 5 (sflow.org, 2004), the generic interface counters of section 5.5; RFC 2863; the
OpenConfig model of interfaces.
"""
import argparse
import ipaddress
import json
import socket
import struct
import sys
import time

HEADING = ("at_s,device,port,rate_bps,in_bytes,in_packets,in_drops,in_errors,"
           "out_bytes,out_packets,out_drops,out_errors,queued_bytes,rx_pauses")
COUNTS = ("in_bytes", "in_packets", "in_drops", "in_errors", "out_bytes", "out_packets", "out_drops", "out_errors")
COUNTER_SAMPLE, EXPANDED_COUNTER_SAMPLE, GENERIC_INTERFACE = 2, 4, 1
RECORDS_MOST = 64  # of a sample, and samples of a datagram


class Malformed(Exception):
    """A datagram that is not what its lengths say."""


class Words:
    """The big-endian numbers of a part of a datagram, one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Malformed(f"{count} bytes are missing at {self.at}")
        self.at += count
        return self.data[self.at - count:self.at]

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.take(8))[0]

    def part(self):
        """The next `opaque`: its length and so many bytes, a multiple of four."""
        length = self.u32()
        return Words(self.take((length + 3) // 4 * 4)[:length])


def known(value, most):
    """sFlow says with all bits set that it does not know a counter."""
    return None if value == most else value


def generic_interface(words):
    """The 88 bytes of the generic interface counters, by ifIndex."""
    index, _, speed, _, _ = words.u32(), words.u32(), words.u64(), words.u32(), words.u32()
    counts = {}
    for side in ("in", "out"):
        counts[side + "_bytes"] = known(words.u64(), 2**64 - 1)
        packets = [known(words.u32(), 2**32 - 1) for _ in range(3)]  # unicast, multicast, broadcast
        counts[side + "_packets"] = None if packets[0] is None else sum(one or 0 for one in packets)
        counts[side + "_drops"] = known(words.u32(), 2**32 - 1)
        counts[side + "_errors"] = known(words.u32(), 2**32 - 1)
        if side == "in":
            words.u32()  # unknown protocols
    return index, speed, counts


def read_datagram(data):
    """(address of the switch, its uptime in ms, [(ifIndex, speed, counts)]) of an sFlow datagram."""
    words = Words(data)
    if words.u32() != 5:
        raise Malformed("not sFlow version 5")
    kind = words.u32()
    if kind not in (1, 2):
        raise Malformed(f"an address of type {kind}")
    agent = str(ipaddress.ip_address(words.take(4 if kind == 1 else 16)))
    words.u32(), words.u32()  # sub-agent, number of the datagram
    uptime_ms, ports = words.u32(), []
    for _ in range(min(words.u32(), RECORDS_MOST)):
        sample_type, sample = words.u32(), words.part()
        if sample_type not in (COUNTER_SAMPLE, EXPANDED_COUNTER_SAMPLE):
            continue  # packets, or of another enterprise
        sample.take(8 if sample_type == COUNTER_SAMPLE else 12)  # number and source
        for _ in range(min(sample.u32(), RECORDS_MOST)):
            record_type, record = sample.u32(), sample.part()
            if record_type == GENERIC_INTERFACE:
                ports.append(generic_interface(record))
    return agent, uptime_ms, ports


class WideCounters:
    """Extends counters of 32 bits, which wrap, to any length; they begin anew when the switch restarts."""

    def __init__(self):
        self.last, self.added, self.uptimes = {}, {}, {}

    def widen(self, port, uptime_ms, counts):
        has_restarted = uptime_ms < self.uptimes.get(port, 0)
        self.uptimes[port] = uptime_ms
        wide = {}
        for name, value in counts.items():
            key = (port, name)
            if value is None:
                continue
            if has_restarted or key not in self.last:
                self.added[key] = 0
            elif value < self.last[key]:
                self.added[key] += 2**32
            self.last[key] = value
            wide[name] = value + self.added[key]
        return wide


def line(at, device, port, speed_bps, counts):
    fields = [f"{at:.3f}", device, port, str(speed_bps) if speed_bps else ""]
    fields += ["" if counts.get(name) is None else str(counts[name]) for name in COUNTS]
    return ",".join(fields + [str(counts.get("queued_bytes", "")), str(counts.get("rx_pauses", ""))])


def sflow_lines(ports, data, wide, now):
    """Lines of a datagram; ports that `ports` does not name are left out."""
    agent, uptime_ms, found = read_datagram(data)
    for index, speed, counts in found:
        place = ports.get((agent, str(index)))
        if place:
            # Bytes have 64 bits and do not wrap.
            narrow = {name: value for name, value in counts.items() if not name.endswith("_bytes")}
            yield line(now, *place, speed, counts | wide.widen((agent, index), uptime_ms, narrow))


# The last element of OpenConfig's paths, below .../state and .../state/counters.
GNMIC_NAMES = {
    "in-octets": "in_bytes", "in-pkts": "in_packets", "in-discards": "in_drops", "in-errors": "in_errors",
    "out-octets": "out_bytes", "out-pkts": "out_packets", "out-discards": "out_drops", "out-errors": "out_errors",
    "in-mac-pause-frames": "rx_pauses",
}


class GnmicPorts:
    """The last values of each port: an update may have only those that changed."""

    def __init__(self, ports):
        self.ports, self.values = ports, {}

    def lines(self, event):
        tags = event.get("tags") or {}
        source = str(tags.get("source", "")).rsplit(":", 1)[0]
        place = self.ports.get((source, str(tags.get("interface_name", ""))))
        if not place:
            return
        counts = self.values.setdefault(place, {})
        before = dict(counts)
        for path, value in (event.get("values") or {}).items():
            name = GNMIC_NAMES.get(path.rsplit("/", 1)[-1])
            if name and str(value).isdigit():
                counts[name] = int(value)
        if counts != before:
            yield line(int(event["timestamp"]) / 1e9, *place, None, counts)


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
                    raise SystemExit("sflow_counters: no end of a JSON value in 16 MiB; give gnmic --format event") from None
                break
            yield from value if isinstance(value, list) else [value]
            text = text[end:].lstrip()


def read_ports(path):
    ports = {}
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            fields = text.strip().split(",")
            if len(fields) == 4:
                ports[fields[0], fields[1]] = (fields[2], fields[3])
            elif text.strip() and not text.startswith("#"):
                raise SystemExit(f"{path}:{number}: write four fields: switch, port, and both of the cluster file")
    return ports


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ports", required=True, help="which port is which link")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--sflow", type=int, metavar="PORT", help="receive sFlow datagrams at this UDP port")
    kind.add_argument("--gnmic", action="store_true", help="read the events of gnmic from standard input")
    options = parser.parse_args(arguments)
    ports = read_ports(options.ports)
    if options.gnmic:
        print(HEADING, flush=True)
        known_ports = GnmicPorts(ports)
        for event in json_events(sys.stdin):
            for text in known_ports.lines(event):
                print(text, flush=True)
        return
    receiver, wide = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), WideCounters()
    receiver.bind(("", options.sflow))
    print(HEADING, flush=True)
    while True:
        data, sender = receiver.recvfrom(65535)
        try:
            for text in sflow_lines(ports, data, wide, time.time()):
                print(text, flush=True)
        except Malformed as error:
            print(f"sflow_counters: {sender[0]}: {error}; it is left out", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (KeyboardInterrupt, BrokenPipeError):
        pass
