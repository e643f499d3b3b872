"""What a rank says of itself when the ranks meet: the job's token, its server, its address."""
import hashlib
import ipaddress
import os
import secrets
import socket

TOKEN = "regatta/token"


def token(store, rank):
    """The same secret on all ranks of the group; rank 0 makes it up."""
    if rank == 0:
        store.set(TOKEN, secrets.token_hex(16))
    return store.get(TOKEN).decode()


def server():
    """Equal on ranks that may share memory: those under one kernel, in one network namespace."""
    if "REGATTA_SERVER" in os.environ:
        return os.environ["REGATTA_SERVER"]
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    space = os.stat("/proc/self/ns/net").st_ino
    # Messages name a rank by this text: the host, and what tells its namespaces and containers apart.
    mark = hashlib.sha256(f"{boot}/{space}".encode()).hexdigest()[:6]
    return f"{socket.gethostname()}-{mark}"


def given_address():
    """REGATTA_ADDRESS, which must be one of this machine's."""
    text = os.environ["REGATTA_ADDRESS"]
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(text).version == 6 else socket.AF_INET
    except ValueError as error:
        raise RuntimeError(f"regatta: REGATTA_ADDRESS '{text}' is no address in numbers: "
                           "write it like 10.0.0.1") from error
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((text, 0))
        except OSError as error:
            raise RuntimeError(f"regatta: REGATTA_ADDRESS {text} is no address of this machine "
                               f"({error.strerror}): take one that `ip address` shows") from error
    return text


def address():
    """The address of this machine that others reach, in numbers."""
    if "REGATTA_ADDRESS" in os.environ:
        return given_address()
    master = os.environ.get("MASTER_ADDR", "")
    if not master:
        return "127.0.0.1"
    # A datagram socket that is connected sends nothing: it only chooses the way.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((master, 9))
        except OSError as error:
            raise RuntimeError(f"regatta: no way to MASTER_ADDR {master} ({error.strerror or error}): "
                               "set REGATTA_ADDRESS to the address of this machine") from error
        return probe.getsockname()[0]
