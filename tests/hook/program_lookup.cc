// Looks functions up in every way there is and prints the answers by name.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include "tests/hook/program.h"

namespace regatta::hook_test {
namespace {

const char* const kSymbols[] = {
#define SYMBOL(base, symbol, since) #symbol,
#define TWIN(base, symbol, twin, since) #twin,
#include "tests/standin/symbols.inc"
#undef SYMBOL
#undef TWIN
};
const char* const kBases[] = {
#define SYMBOL(base, symbol, since) #base,
#define TWIN(base, symbol, twin, since)
#include "tests/standin/symbols.inc"
#undef SYMBOL
#undef TWIN
};
const char* const kOthers[] = {
    "malloc", "dlsym", "dlopen",          "cudaMalloc",  "cuNothing",     "cu",
    "",       "curl",  "cublasCreate_v2", "nvmlInit_v2", "pthread_create"};

using Names = std::map<void*, std::string>;

// Which function of the driver, or of the program's other libraries, an address is.
std::string name_of(const Names& names, void* found) {
  if (found == nullptr) return "null";
  if (found == reinterpret_cast<void*>(&dlsym)) return "dlsym";
  if (const auto at = names.find(found); at != names.end()) return at->second;
  Dl_info info{};
  if (dladdr(found, &info) == 0 || info.dli_sname == nullptr) return "unknown";
  return info.dli_sname;
}

Names driver_names() {
  Names names;
  for (const char* const symbol : kSymbols)
    if (void* const found = driver_symbol(symbol)) names[found] += std::string("/") + symbol;
  return names;
}

struct Answer {
  const char* way = nullptr;
  std::string name;
  void* found = nullptr;
  bool has_error = false;
};

Answer ask_dlsym(const char* way, void* handle, const std::string& name) {
  dlerror();
  void* const found = dlsym(handle, name.c_str());
  return {way, name, found, dlerror() != nullptr};
}

void print_answer(const Names& names, const Answer& answer) {
  std::printf("dlsym %s %s: %s%s\n", answer.way, answer.name.c_str(),
              name_of(names, answer.found).c_str(), answer.has_error ? ", an error" : "");
}

void print_search(const Names& names, const std::string& name, int version, std::uint64_t flags) {
  int status = -7;
  void* found = &status;
  CUresult result = CU(cuGetProcAddress_v2)(name.c_str(), &found, version, flags, &status);
  if (found == &status) found = nullptr;
  std::printf("v2 %s %d %llu: %d %d %s\n", name.c_str(), version,
              static_cast<unsigned long long>(flags), result, status,
              name_of(names, found).c_str());
  found = &status;
  result = CU(cuGetProcAddress)(name.c_str(), &found, version, flags);
  if (found == &status) found = nullptr;
  std::printf("v1 %s %d %llu: %d %s\n", name.c_str(), version,
              static_cast<unsigned long long>(flags), result, name_of(names, found).c_str());
}

// The search by a search that was found by a search.
void print_nested(const Names& names) {
  void* search = nullptr;
  auto next = CU(cuGetProcAddress_v2);
  for (int depth = 0; depth < 4; ++depth) {
    int status = -1;
    const CUresult result = next("cuGetProcAddress", &search, 12000, 0, &status);
    std::printf("nested %d: %d %d %s\n", depth, result, status, name_of(names, search).c_str());
    next = reinterpret_cast<decltype(next)>(search);
    void* launch = nullptr;
    next("cuLaunchKernel", &launch, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status);
    std::printf("nested launch %d: %s\n", depth, name_of(names, launch).c_str());
  }
}

std::string mutated(std::mt19937& random, std::string name) {
  const char letters[] = "cuMemAlloc_v23ptsz";
  switch (random() % 4) {
    case 0:
      return name;
    case 1:
      return name + (random() % 2 != 0 ? "_v2" : "_ptsz");
    case 2:
      name[random() % name.size()] = letters[random() % (sizeof letters - 1)];
      return name;
    default:
      return name.substr(0, random() % name.size());
  }
}

}  // namespace

int print_lookups(unsigned seed) {
  std::vector<Answer> before;  // anybody opened the driver
  for (const char* const name : {"cuInit", "cuMemAlloc_v2", "cuGetProcAddress_v2", "malloc"}) {
    before.push_back(ask_dlsym("default before", RTLD_DEFAULT, name));
    before.push_back(ask_dlsym("next before", RTLD_NEXT, name));
  }
  const Names names = driver_names();
  for (const Answer& answer : before)
    print_answer(names, answer);
  const std::vector<std::pair<const char*, void*>> ways = {{"default", RTLD_DEFAULT},
                                                           {"next", RTLD_NEXT},
                                                           {"program", dlopen(nullptr, RTLD_LAZY)},
                                                           {"driver", driver_handle()}};
  const auto print_ways = [&](const std::string& name) {
    for (const auto& [way, handle] : ways)
      print_answer(names, ask_dlsym(way, handle, name));
  };
  for (const char* const symbol : kSymbols)
    print_ways(symbol);
  for (const char* const name : kOthers)
    print_ways(name);
  print_nested(names);
  for (const char* const base : kBases)
    for (const int version :
         {2000, 3020, 4000, 7000, 10000, 11020, 11040, 12000, 12080, 13000, 13010})
      for (const std::uint64_t flags : {0ULL, 1ULL, 2ULL, 3ULL})
        print_search(names, base, version, flags);
  std::mt19937 random(seed);
  for (int i = 0; i < 5000; ++i) {
    const bool by_base = random() % 2 != 0;
    const std::string name = mutated(random, by_base ? kBases[random() % std::size(kBases)]
                                                     : kSymbols[random() % std::size(kSymbols)]);
    print_search(names, name, static_cast<int>(random() % 1400) * 10, random() % 4);
    print_ways(name);
  }
  int status = 0;
  void* found = nullptr;
  std::printf("no name: %d, no place: %d\n",
              CU(cuGetProcAddress_v2)(nullptr, &found, 12000, 0, &status),
              CU(cuGetProcAddress_v2)("cuInit", nullptr, 12000, 0, nullptr));
  return 0;
}

// Libraries look the same things up again and again, in all threads, while others load libraries.
// A library that comes with a plug-in looks functions up in all that is loaded.
int look_up_in_dependency(const char* plugin) {
  void* const opened = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return 1;
  using Find = void*(const char* name);
  auto* const find = reinterpret_cast<Find*>(dlsym(opened, "regatta_test_find"));
  if (find == nullptr) return 2;
  for (const char* const name : {"cuInit", "cuNothing", "malloc"})
    std::printf("%s: %s\n", name, find(name) == nullptr ? "null" : "found");
  return 0;
}

int look_up_from_threads() {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  void* const malloc_before = dlsym(RTLD_NEXT, "malloc");
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      void* const launch = driver_symbol("cuLaunchKernel");
      for (int round = 0; round < 5000; ++round) {
        if (dlsym(RTLD_NEXT, "malloc") != malloc_before) ++wrong;
        if (driver_symbol("cuLaunchKernel") != launch || launch == nullptr) ++wrong;
        if (dlsym(RTLD_NEXT, "no_such_function") != nullptr) ++wrong;
        if (i != 0 || round % 50 != 0) continue;
        void* const other = dlopen("libm.so.6", RTLD_NOW);
        if (dlsym(other, "cos") == nullptr) ++wrong;
        dlclose(other);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  std::printf("%d wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}

}  // namespace regatta::hook_test
