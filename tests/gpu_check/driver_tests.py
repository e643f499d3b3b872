"""Tests of a GoogleTest program on a driver, any of which may crash or hang without the others being lost."""
import re
import subprocess
import time

TOGETHER_S = 150
ALONE_S = 60


class DriverTests:
    def __init__(self, program, log, environment):
        self.program, self.log, self.environment = program, log, environment

    def start(self, *words):
        return subprocess.Popen([self.program, *words], env=self.environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def names(self, pattern):
        with self.start("--gtest_list_tests", "--gtest_filter=" + pattern) as process:
            listing = process.communicate(timeout=ALONE_S)[0]
        tests, suite = [], ""
        for line in listing.split("\n"):
            if line.startswith("  "):
                tests.append(suite + line.split()[0])
            elif line.split("#")[0].strip().endswith("."):
                suite = line.split()[0]
        return tests

    def run(self, names, seconds):
        """How each of them ended that was begun: passed, skipped, failed, or what ended the program."""
        process = self.start("--gtest_filter=" + ":".join(names))
        try:
            output, end = process.communicate(timeout=seconds)[0], ""
        except subprocess.TimeoutExpired:
            process.kill()
            output, end = process.communicate()[0], f"did not end within {seconds:.0f} s"
        except BaseException:
            process.kill()
            raise
        said = {"OK": "passed", "SKIPPED": "skipped", "FAILED": "failed"}
        outcomes = {}
        for mark, name in re.findall(r"^\[ *(RUN|OK|SKIPPED|FAILED) *\] ([\w/]+\.[\w/]+)", output, re.MULTILINE):
            if mark == "RUN":
                outcomes[name] = end or f"exit status {process.returncode}"
            elif outcomes.get(name) not in said.values():
                outcomes[name] = said[mark]
        if any(outcome not in ("passed", "skipped") for outcome in outcomes.values()):
            self.log.write(output)
            self.log.flush()
        return outcomes

    def run_alone(self, name):
        return self.run([name], ALONE_S).get(name, "did not begin")

    def run_together(self, names):
        """In one process, and those that come after one that ended it in another."""
        end = time.monotonic() + TOGETHER_S
        outcomes, left = {}, names
        while left and time.monotonic() < end:
            seen = self.run(left, min(ALONE_S, end - time.monotonic()))
            outcomes.update(seen or {left[0]: "did not begin"})
            left = [name for name in names if name not in outcomes]
        outcomes.update((name, "no time was left") for name in left)
        return outcomes
