// Loads a library with so many MiB of variables as the first word says, unloads it, and makes a
// second context. With a second word the context is made by a thread that has begun before, which
// only the stand-in driver can be made to do slowly enough.
#include <chrono>
#include <string>
#include <thread>

#include <unistd.h>

#include "tests/attacks/attack.h"

namespace {

using regatta::attacks::driver_symbol;

CUlibrary load(std::uint64_t mib) {
  const std::string text = regatta::attacks::kPtxBegin +
                           (".visible .global .align 8 .b8 room[" + std::to_string(mib << 20)) +
                           "];\n.visible .entry spin_1us() { ret; }\n";
  CUlibrary library = nullptr;
  MUST(CU(cuLibraryLoadData)(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  return library;
}

// In a context that is being made the library is placed, which the driver is told to do slowly.
void unload_meanwhile(CUlibrary library) {
  using Clock = std::chrono::steady_clock;
  std::thread maker([] {
    CUcontext context = nullptr;
    MUST(CU(cuCtxCreate_v2)(&context, 0, 0));
  });
  ::usleep(200'000);
  const auto begin = Clock::now();
  MUST(CU(cuLibraryUnload)(library));
  const bool has_waited = Clock::now() - begin > std::chrono::milliseconds(200);
  std::printf("unloaded %s the library was placed\n", has_waited ? "after" : "before");
  maker.join();
}

void unload_then_create(CUlibrary library) {
  CUcontext context = nullptr;
  const CUresult unloaded = CU(cuLibraryUnload)(library);
  const CUresult made = CU(cuCtxCreate_v2)(&context, 0, 0);
  std::printf("unload %d, context %d\n", static_cast<int>(unloaded), static_cast<int>(made));
}

}  // namespace

int main(int argc, char** argv) {
  regatta::attacks::open_context();
  const CUlibrary library = load(regatta::attacks::number(argc, argv, 1, 60));
  if (argc > 2) regatta::attacks::require_stand_in("a context that is made slowly");
  if (argc > 2)
    unload_meanwhile(library);
  else
    unload_then_create(library);
  std::fflush(stdout);
  ::pause();
}
