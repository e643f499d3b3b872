"""How fast a program works, by the lines of regatta-gpu-work: a time, and how many kernels are done."""
import threading
import time

from outcome import Failed


def counts_of(output):
    return [tuple(map(float, line.split())) for line in output.split("\n") if line]


def rate(counts, begin, end):
    """Kernels a second between two times."""
    def at(when):
        for (t0, n0), (t1, n1) in zip(counts, counts[1:]):
            if t0 <= when <= t1:
                return n0 + (n1 - n0) * (when - t0) / (t1 - t0)
        raise Failed(f"no count at {when:.1f}: the program had {len(counts)} counts")
    return (at(end) - at(begin)) / (end - begin)


class Progress:
    """The counts of a program that still works."""

    def __init__(self, process):
        self.counts = []
        threading.Thread(target=self.follow, args=[process.stdout], daemon=True).start()

    def follow(self, output):
        for line in output:
            if line.endswith("\n"):  # not half of one, of a program that was ended
                self.counts += counts_of(line)

    def has_come_to(self, when):
        return bool(self.counts) and self.counts[-1][0] >= when

    def longest_pause(self):
        times = [when for when, _ in self.counts] + [time.monotonic()]
        return max(later - earlier for earlier, later in zip(times, times[1:]))

    def rate(self, begin, end):
        deadline = time.monotonic() + 5
        while not self.has_come_to(end) and time.monotonic() < deadline:
            time.sleep(0.02)
        return rate(self.counts, begin, end)
