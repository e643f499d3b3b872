"""What a rank says of itself when the ranks meet: the job's token, its server, its address."""
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
    return f"{socket.gethostname()}/{boot[:8]}/{space}"


def address():
    """The address of this machine that others reach, in numbers."""
    if "REGATTA_ADDRESS" in os.environ:
        return os.environ["REGATTA_ADDRESS"]
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
