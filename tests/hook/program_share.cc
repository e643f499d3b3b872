// Opens the memory of another process, which shows it in every way, frees it, and is killed.
#include <csignal>
#include <cstdio>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hook/program.h"
#include "tests/hook/program_steps.h"
#include "tests/standin/message_with_file.h"

namespace regatta::hook_test {
namespace {

constexpr std::size_t kMiB = 1 << 20;
constexpr int kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr CUmemLocation kHere = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

#define EXPECT_OK(call) expect((call) == CUDA_SUCCESS, #call)

// A word between the two; a file may come along.
struct Word {
  char what = 0;
  CUipcMemHandle handle{};
  CUmemPoolPtrExportData pointer{};
};

void send_word(int socket, const Word& word, int file) {
  expect(standin::send_with_file(socket, &word, sizeof word, file) == sizeof word, "sendmsg");
}

bool receive_word(int socket, Word& word, int& file) {
  return standin::receive_with_file(socket, &word, sizeof word, file) == sizeof word;
}

// The one whose memory it is.
class Owner {
 public:
  int run(int socket) {
    CUcontext context = nullptr;
    EXPECT_OK(CU(cuInit)(0));
    EXPECT_OK(CU(cuCtxCreate_v2)(&context, 0, 0));
    Word word;
    for (int file = -1; receive_word(socket, word, file);) {
      file = -1;
      do_as_told(word, file);
      send_word(socket, word, file);
      if (file >= 0) close(file);
    }
    return failures;
  }

 private:
  void do_as_told(Word& word, int& file) {
    switch (word.what) {
      case 'b':  // a block of its own
        EXPECT_OK(CU(cuMemAlloc_v2)(&address_, 4 * kMiB));
        EXPECT_OK(CU(cuIpcGetMemHandle)(&word.handle, address_));
        break;
      case 's':  // beside others in a block
        EXPECT_OK(CU(cuMemAlloc_v2)(&address_, 700));
        EXPECT_OK(CU(cuIpcGetMemHandle)(&word.handle, address_));
        break;
      case 'f':
        EXPECT_OK(CU(cuMemFree_v2)(address_));
        break;
      case 'e': {  // without an address
        const CUmemAllocationProp exported = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .requestedHandleTypes = kFile,
                                              .location = kHere};
        EXPECT_OK(CU(cuMemCreate)(&physical_, 6 * kMiB, &exported, 0));
        EXPECT_OK(CU(cuMemExportToShareableHandle)(&file, physical_, kFile, 0));
        break;
      }
      case 'r':
        EXPECT_OK(CU(cuMemRelease)(physical_));
        break;
      case 'p': {
        const CUmemPoolProps exported = {
            .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = kFile, .location = kHere};
        EXPECT_OK(CU(cuMemPoolCreate)(&pool_, &exported));
        EXPECT_OK(CU(cuMemPoolExportToShareableHandle)(&file, pool_, kFile, 0));
        EXPECT_OK(CU(cuMemAllocFromPoolAsync)(&address_, 3 * kMiB, pool_, nullptr));
        EXPECT_OK(CU(cuMemPoolExportPointer)(&word.pointer, address_));
        EXPECT_OK(CU(cuCtxSynchronize)());
        break;
      }
      case 'q':
        EXPECT_OK(CU(cuMemFreeAsync)(address_, nullptr));
        EXPECT_OK(CU(cuMemPoolDestroy)(pool_));
        EXPECT_OK(CU(cuCtxSynchronize)());
        break;
      default:
        break;
    }
  }

  CUdeviceptr address_ = 0;
  CUmemGenericAllocationHandle physical_ = 0;
  CUmemoryPool pool_ = nullptr;
};

class Other {
 public:
  Other() {
    int ends[2] = {-1, -1};
    expect(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[0]);
      _exit(Owner().run(ends[1]));
    }
    close(ends[1]);
    socket_ = ends[0];
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() {
    if (pid_ > 0) kill();
  }

  Word ask(char what) {
    Word word{.what = what};
    send_word(socket_, word, -1);
    if (file_ >= 0) close(file_);
    expect(receive_word(socket_, word, file_), "an answer");
    return word;
  }
  void* file() const { return reinterpret_cast<void*>(static_cast<std::intptr_t>(file_)); }
  void kill() {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    close(socket_);
  }

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
  int file_ = -1;
};

// As a program that works: it waits for its work now and then until it is told to go on.
void work_until_step(const char* name) {
  std::printf("step %s\n", name);
  std::fflush(stdout);
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (poll(&input, 1, 50) == 0)
    EXPECT_OK(CU(cuCtxSynchronize)());
  wait_for_line();
}

CUdeviceptr open(const Word& word) {
  CUdeviceptr address = 0;
  EXPECT_OK(CU(cuIpcOpenMemHandle_v2)(&address, word.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  return address;
}

void addresses(Other& other) {
  const Word block = other.ask('b');
  work_until_step("another process's block");
  const CUdeviceptr once = open(block);
  const CUdeviceptr twice = open(block);
  work_until_step("opened twice");
  EXPECT_OK(CU(cuIpcCloseMemHandle)(once));
  work_until_step("closed once");
  other.ask('f');
  work_until_step("freed by its owner while it is open");
  EXPECT_OK(CU(cuIpcCloseMemHandle)(twice));
  work_until_step("closed");
  const CUdeviceptr part = open(other.ask('s'));
  work_until_step("a small one is open");
  EXPECT_OK(CU(cuIpcCloseMemHandle)(part));
  other.ask('f');
  work_until_step("closed and freed");
}

void handles(Other& other) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr range = 0;
  other.ask('e');
  EXPECT_OK(CU(cuMemImportFromShareableHandle)(&handle, other.file(), kFile));
  work_until_step("imported");
  EXPECT_OK(CU(cuMemAddressReserve)(&range, 6 * kMiB, 0, 0, 0));
  EXPECT_OK(CU(cuMemMap)(range, 6 * kMiB, 0, handle, 0));
  EXPECT_OK(CU(cuMemRelease)(handle));
  work_until_step("imported and mapped");
  other.ask('r');
  work_until_step("released by its owner");
  EXPECT_OK(CU(cuMemUnmap)(range, 6 * kMiB));
  work_until_step("unmapped");
  EXPECT_OK(CU(cuMemAddressFree)(range, 6 * kMiB));
}

void pools(Other& other) {
  CUmemoryPool pool = nullptr;
  CUdeviceptr address = 0;
  Word word = other.ask('p');
  EXPECT_OK(CU(cuMemPoolImportFromShareableHandle)(&pool, other.file(), kFile, 0));
  work_until_step("a pool of another process");
  EXPECT_OK(CU(cuMemPoolImportPointer)(&address, pool, &word.pointer));
  work_until_step("with an address here");
  EXPECT_OK(CU(cuMemFreeAsync)(address, nullptr));
  EXPECT_OK(CU(cuMemPoolDestroy)(pool));
  EXPECT_OK(CU(cuCtxSynchronize)());
  work_until_step("not here any more");
  other.ask('q');
  work_until_step("nor there");
}

}  // namespace

int open_memory_of_another() {
  Other other;
  Other victim;
  CUcontext context = nullptr;
  EXPECT_OK(CU(cuInit)(0));
  EXPECT_OK(CU(cuCtxCreate_v2)(&context, 0, 0));
  addresses(other);
  handles(other);
  pools(other);
  const CUdeviceptr orphan = open(victim.ask('b'));
  victim.kill();
  work_until_step("killed while it is open");
  EXPECT_OK(CU(cuIpcCloseMemHandle)(orphan));
  work_until_step("closed after that");
  EXPECT_OK(CU(cuCtxDestroy_v2)(context));
  return failures == 0 ? 0 : 1;
}

}  // namespace regatta::hook_test
