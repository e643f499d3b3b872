#!/usr/bin/env python3
"""Writes counters of switch ports, as `regatta rates counters` and `regatta probe --counters` read them
(docs/formats/switch_counters.md), from sFlow version 5 datagrams. gnmi_counters.py does so by gNMI.

    examples/sflow_counters.py --ports ports.csv --sflow 6343 > counters.csv       until Ctrl-C

`ports.csv` says which port is which link, a line each: the switch's address in sFlow, the port's ifIndex, and
the switch and link of the cluster file:

    10.0.0.7,5,leaf0,leaf0-spine1

Status: tried with datagrams written by the specification's layout, never with a switch.
Sources: sFlow Version 5 (sflow.org, 2004), the generic interface counters of section 5.5; RFC 2863.
"""
import argparse
import ipaddress
import pathlib
import socket
import struct
import sys
import time

HEADING = ("at_s,device,port,rate_bps,in_bytes,in_packets,in_drops,in_errors,"
           "out_bytes,out_packets,out_drops,out_errors,queued_bytes,rx_pauses,up")
COUNTS = ("in_bytes", "in_packets", "in_drops", "in_errors", "out_bytes", "out_packets", "out_drops", "out_errors")
COUNTER_SAMPLE, EXPANDED_COUNTER_SAMPLE, GENERIC_INTERFACE = 2, 4, 1
RECORDS_MOST = 64  # of a sample, and samples of a datagram


class BadInput(Exception):
    """What the user gave and what to do about it, in a sentence."""


class ArgumentParser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message}; see --help")


class Malformed(Exception):
    """A datagram or an event that is not what its kind says."""


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
    index, _, speed, _, status = words.u32(), words.u32(), words.u64(), words.u32(), words.u32()
    counts = {"up": status >> 1 & 1}  # ifOperStatus; bit 0 is ifAdminStatus
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
    return ",".join(fields + [str(counts.get(name, "")) for name in ("queued_bytes", "rx_pauses", "up")])


def sflow_lines(ports, data, wide, now):
    """Lines of a datagram; ports that `ports` does not name are left out."""
    agent, uptime_ms, found = read_datagram(data)
    for index, speed, counts in found:
        place = ports.get((agent, str(index)))
        if place:
            # Bytes have 64 bits and do not wrap.
            narrow = {name: value for name, value in counts.items() if name in COUNTS and not name.endswith("_bytes")}
            yield line(now, *place, speed, counts | wide.widen((agent, index), uptime_ms, narrow))


def read_ports(path):
    ports = {}
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--ports {path}: {error.strerror}; name a file that says which port is which link") from None
    except UnicodeDecodeError:
        raise BadInput(f"--ports {path}: is no text; name a file that says which port is which link") from None
    for number, line_text in enumerate(text.splitlines(), 1):
        fields = line_text.strip().split(",")
        if len(fields) == 4:
            ports[fields[0], fields[1]] = (fields[2], fields[3])
        elif line_text.strip() and not line_text.startswith("#"):
            raise BadInput(f"{path}:{number}: write four fields: switch, port, and both of the cluster file")
    if not ports:
        raise BadInput(f"--ports {path}: names no port; write a line for each: switch, port, and both of the cluster file")
    return ports


def open_receiver(port):
    if not 1 <= port <= 65535:
        raise BadInput(f"--sflow {port}: a UDP port is from 1 to 65535; sFlow's is 6343")
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        receiver.bind(("", port))
    except OSError as error:
        raise BadInput(f"--sflow {port}: {error.strerror}; give another port, as in the switches' settings") from None
    return receiver


def run(main):
    """Calls main with the arguments. Bad input ends the program with a sentence and status 2."""
    name = pathlib.Path(sys.argv[0]).stem
    try:
        main(sys.argv[1:])
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    except BadInput as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)


def main(arguments):
    parser = ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ports", required=True, metavar="FILE", help="which port is which link")
    parser.add_argument("--sflow", type=int, required=True, metavar="PORT", help="receive sFlow datagrams at this UDP port")
    options = parser.parse_args(arguments)
    ports = read_ports(options.ports)
    receiver, wide = open_receiver(options.sflow), WideCounters()
    print(HEADING, flush=True)
    while True:
        data, sender = receiver.recvfrom(65535)
        try:
            for text in sflow_lines(ports, data, wide, time.time()):
                print(text, flush=True)
        except Malformed as error:
            print(f"sflow_counters: {sender[0]}: {error}; it is left out", file=sys.stderr)


if __name__ == "__main__":
    run(main)
