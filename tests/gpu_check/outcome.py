"""How a part ends that did not pass, and the output of programs."""
import subprocess


class NotRun(Exception):
    """A part that cannot run here, and why."""


class Failed(Exception):
    """A part that ran and found something else than it should."""


def end_process(process, seconds=20):
    """One that the driver does not let go is left behind rather than waited for."""
    process.kill()
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def finish(process, seconds):
    """The output of a process that ends by itself."""
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failed(f"{process.args[0]}: did not end within {seconds:.0f} s") from None
    if process.returncode != 0:
        raise Failed(f"exit status {process.returncode}: {(errors or output).strip()[-300:]}")
    return output
