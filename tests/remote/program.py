"""Programs of the driver API, as they would run on a local GPU: program.py NAME [ARGUMENT...]. What does not hold ends them."""
import ctypes
import sys
import threading
import time

CUDA = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20
PTX = b".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry spin_20ms() { ret; }\n.visible .entry spin_9s() { ret; }\n.visible .entry spin_ns(.param .u64 t) { ret; }\n"


def give(name, *arguments):
    return getattr(CUDA, name)(*arguments)


def do(name, *arguments):
    result = give(name, *arguments)
    if result != 0:
        sys.exit(f"{name}: {result}")


def word(number=0):
    return ctypes.c_uint64(number)


def start():
    context = word()
    do("cuInit", 0)
    do("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    return context


def allocate(size):
    address = word()
    do("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address


def kernel(name):
    module, function = word(), word()
    do("cuModuleLoadData", ctypes.byref(module), PTX)
    do("cuModuleGetFunction", ctypes.byref(function), module, name)
    return function


def launch(function, grid=1, parameters=None):
    return give("cuLaunchKernel", function, grid, 1, 1, 32, 1, 1, 0, None, parameters, None)


def free_memory():
    free = ctypes.c_size_t()
    do("cuMemGetInfo_v2", ctypes.byref(free), None)
    return free.value


def show_free():
    start()
    print(free_memory(), flush=True)


def hold(mebibytes):
    """Says a line when it has the memory, asks the driver once for each line of its input, and says what came."""
    start()
    allocate(int(mebibytes) * MIB)
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.monotonic()
        result = give("cuCtxSynchronize")
        print(result, "soon" if time.monotonic() - began < 10 else "late", flush=True)


def hold_beside_a_beginner(mebibytes):
    """As hold, while another thread makes its first call; the second line asks what that one got."""
    start()
    allocate(int(mebibytes) * MIB)
    print("ready", flush=True)
    results = []
    beginner = threading.Thread(target=lambda: results.append(give("cuCtxSynchronize")))
    sys.stdin.readline()
    beginner.start()
    time.sleep(0.5)
    began = time.monotonic()
    result = give("cuCtxSynchronize")
    print(result, "soon" if time.monotonic() - began < 1 else "late", flush=True)
    sys.stdin.readline()
    beginner.join()
    print(*results, flush=True)


def copy():
    """Lengths around the pieces that copies travel in, at once and in a stream, from changing buffers."""
    start()
    for size in (0, 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 12345):
        sent = (bytes(range(251)) * (size // 251 + 1))[:size]
        buffer = ctypes.create_string_buffer(sent, size) if size else ctypes.create_string_buffer(1)
        address = allocate(max(size, 1))
        for way in ("cuMemcpyHtoD_v2", "cuMemcpyHtoDAsync_v2"):
            got = ctypes.create_string_buffer(size + 1)
            do("cuMemsetD8_v2", address, 0, ctypes.c_size_t(size))
            last = (None,) if "Async" in way else ()
            do(way, address, buffer, ctypes.c_size_t(size), *last)
            ctypes.memset(buffer, 0, size)  # it may change as soon as the call returns
            do(way.replace("HtoD", "DtoH"), got, address, ctypes.c_size_t(size), *last)
            if got.raw[:size] != sent:
                sys.exit(f"{way} of {size} bytes: what came back differs")
            ctypes.memmove(buffer, sent, size)


def order():
    """What one thread sent without waiting is done before what another thread asks after it."""
    context = start()
    address = allocate(4)
    value = ctypes.c_uint32()
    todo, done = threading.Semaphore(0), threading.Semaphore(0)

    def read():
        do("cuCtxSetCurrent", context)
        while todo.acquire() and not stopping:
            do("cuMemcpyDtoH_v2", ctypes.byref(value), address, ctypes.c_size_t(4))
            done.release()

    stopping = []
    reader = threading.Thread(target=read)
    reader.start()
    wrong = 0
    for i in range(1, 500):
        do("cuMemsetD32Async", address, i, ctypes.c_size_t(1), None)
        todo.release()
        done.acquire()
        wrong += value.value != i
    stopping.append(True)
    todo.release()
    reader.join()
    if wrong:
        sys.exit(f"{wrong} of 499 reads came before the write")


def start_soon():
    """A launch begins although nobody asks for anything after it."""
    start()
    event = word()
    function = kernel(b"spin_20ms")
    do("cuEventCreate", ctypes.byref(event), 0)
    for _ in range(5):
        if launch(function) != 0:
            sys.exit("the launch failed")
        do("cuEventRecord", event, None)
        time.sleep(0.2)
        do("cuEventQuery", event)


def late_errors():
    """The error of a launch nobody waits for is given once, by the next call that waits."""
    start()
    function = kernel(b"spin_ns")
    statuses = [launch(function, grid=0), launch(function), give("cuCtxSynchronize"), give("cuCtxSynchronize")]
    address = word()
    statuses += [launch(function, grid=0), give("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(16)), address.value]
    print(*statuses, flush=True)


def crowd():
    """More than any buffer takes, behind a kernel of nine seconds: the server takes nothing for as long."""
    start()
    address = allocate(MIB)
    buffer = ctypes.create_string_buffer(MIB)
    if launch(kernel(b"spin_9s")) != 0:
        sys.exit("the launch failed")
    for _ in range(100):
        do("cuMemcpyHtoDAsync_v2", address, buffer, ctypes.c_size_t(MIB), None)
    do("cuCtxSynchronize")


def forge():
    """Handles that were never given: the host process refuses them, and lives on."""
    start()
    for name in ("cuStreamSynchronize", "cuEventQuery", "cuModuleUnload", "cuGraphDestroy", "cuCtxPushCurrent_v2"):
        print(give(name, word(0x41414140)), end=" ")
    print(give("cuCtxSynchronize"), flush=True)


def forked():
    import os
    start()
    child = os.fork()
    if child == 0:
        os._exit(give("cuCtxSynchronize"))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(status, give("cuCtxSynchronize"), flush=True)


globals()[sys.argv[1]](*sys.argv[2:])
