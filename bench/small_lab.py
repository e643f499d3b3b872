"""Labs for measurements: the text of their cluster, and one that is up for as long as a `with` block lasts."""
import contextlib
import subprocess

CLUSTER = """\
name: {name}
server_types:
  one:
    devices: {{count: 1, type: cpu, cpu_share: 5%}}
    intra: {{kind: shm}}
    nics: {{count: {nics}, rate: 1Gbps}}
fabric: {{{fabric}}}
servers: {{count: {servers}, type: one}}
"""


def cluster_text(name, servers, fabric, nics=1):
    return CLUSTER.format(name=name, servers=servers, fabric=fabric, nics=nics)


def two_tiers(servers_per_leaf, spines):
    """A fabric, for cluster_text()."""
    return f"tiers: [leaf, spine], servers_per_leaf: {servers_per_leaf}, spines: {spines}, uplink: 1Gbps"


@contextlib.contextmanager
def lab(regatta, cluster, name):
    """Of the cluster that the file describes, `name` being its name."""
    subprocess.run([regatta, "lab", "up", cluster], check=True, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([regatta, "lab", "down", name], check=True, stdout=subprocess.DEVNULL)
