"""How a part ends that does not pass."""


class NotRun(Exception):
    """A part that cannot run here, and why."""


class Failed(Exception):
    """A part that ran and found something else than it should."""
