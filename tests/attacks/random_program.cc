// Takes and returns device memory in ways that are drawn at random (random_options.h has its
// words). After each call it compares what the device has for it with the quota (status 3), and now
// and then, when all is quiet, it says "step" and waits for a line, so that the books can be
// compared with the device. Status 92: there was no room for its context.
#include "tests/attacks/random_program.h"

#include <algorithm>
#include <utility>

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regatta/gpu/device/abi/nvml.h"
#include "tests/attacks/random_steps.h"

namespace regatta::attacks {
namespace {

constexpr std::uint64_t kWindowStep = 2 * kMiB;  // of what is written: the begin of each block
constexpr std::uint64_t kWindow = 64 * 1024;

// The bytes that the device has for this process; none where NVML does not know it by its number,
// as in a container.
class DeviceView {
 public:
  DeviceView() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    if (library_ == nullptr || list_ == nullptr) {
      std::fputs("no NVML, or it lists no processes\n", stderr);
      std::_Exit(90);
    }
    find<nvmlReturn_t()>("nvmlInit_v2")();
    find<nvmlReturn_t(unsigned, nvmlDevice_t*)>("nvmlDeviceGetHandleByIndex_v2")(0, &device_);
  }
  std::uint64_t own_bytes() const {
    std::vector<nvmlProcessInfo_t> all(256);
    auto count = static_cast<unsigned>(all.size());
    list_(device_, &count, all.data());
    for (unsigned i = 0; i < count; ++i)
      if (all[i].pid == static_cast<unsigned>(::getpid()) &&
          all[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE)
        return all[i].usedGpuMemory;
    return 0;
  }

 private:
  template <typename F>
  F* find(const char* name) const {
    return reinterpret_cast<F*>(::dlsym(library_, name));
  }

  void* library_;
  nvmlDevice_t device_ = nullptr;
  nvmlReturn_t (*list_)(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*) =
      find<nvmlReturn_t(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*)>(
          "nvmlDeviceGetComputeRunningProcesses_v3");
};

[[noreturn]] void end_with(int status, const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  std::_Exit(status);
}

ProgramRecord* find_record(const ProgramOptions& options) {
  static ProgramRecord own;
  if (options.records == ProgramOptions::kNone) return &own;
  void* const memory = ::mmap(nullptr, sizeof(ProgramRecords), PROT_READ | PROT_WRITE, MAP_SHARED,
                              static_cast<int>(options.records), 0);
  if (memory == MAP_FAILED) end_with(4, "wrong: no records");
  return &static_cast<ProgramRecords*>(memory)->all[options.record_number % ProgramRecords::kMost];
}

CUcontext open_context_if_there_is_room() {
  CUcontext context = nullptr;
  MUST(CU(cuInit)(0));
  const CUresult result = CU(cuDevicePrimaryCtxRetain)(&context, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) std::_Exit(92);
  must(result, "cuDevicePrimaryCtxRetain");
  MUST(CU(cuCtxSetCurrent)(context));
  return context;
}

}  // namespace

void expect(bool is_right, const char* what) {
  if (!is_right) end_with(4, std::string("wrong: ") + what);
}

RandomProgram::RandomProgram(const ProgramOptions& options)
    : options_(options), random_(options.seed), record_(find_record(options)) {
  context_ = open_context_if_there_is_room();
  MUST(CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
}

void RandomProgram::run() {
  std::vector<RandomStep> steps;
  for (const auto& kind : {memory_steps(), code_steps(), process_steps()})
    steps.insert(steps.end(), kind.begin(), kind.end());
  if (options_.sender != ProgramOptions::kNone)
    steps.insert(steps.end(), share_steps().begin(), share_steps().end());
  for (std::uint64_t i = 0; i < options_.calls; ++i) {
    const RandomStep& next = steps[below(steps.size())];
    record_->add_call(next.name);
    next.make(*this);
    if (options_.is_checked != 0) compare_with_quota(next.name);
    if (options_.depth != 0 && below(12) == 0) step(next.name);
  }
  while (!held_.empty())
    give_one();
  if (options_.depth != 0) step("all returned");
}

void RandomProgram::fill() {
  CUdeviceptr address = 0;
  const CUresult result = CU(cuMemAlloc_v2)(&address, options_.filled_mib * kMiB);
  if (result != CUDA_SUCCESS)
    end_with(4, "wrong: the " + std::to_string(options_.filled_mib) +
                    " MiB that its tenant has left are refused: " + std::to_string(result));
  step("filled");
}

void RandomProgram::compare_with_quota(const char* after) const {
  static const DeviceView view;
  const std::uint64_t bytes = view.own_bytes();
  if (bytes <= options_.quota_mib * kMiB) return;
  end_with(3, "seed " + std::to_string(options_.seed) + ": " + std::to_string(bytes) +
                  " bytes, and the quota is " + std::to_string(options_.quota_mib) +
                  " MiB, after call " + std::to_string(record_->calls) + ": " + after);
}

// A program that has opened memory of others waits for its work now and then: what became its own
// is counted then. With over-commit one that waits counts as working, so it does not.
void RandomProgram::step(const char* after) {
  constexpr int kApartMs = 40;
  MUST(CU(cuCtxSynchronize)());
  std::printf("step %s\n", after);
  std::fflush(stdout);
  const bool waits = options_.sender != ProgramOptions::kNone && options_.is_swappable == 0;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (::poll(&input, 1, waits ? kApartMs : -1) == 0)
    MUST(CU(cuCtxSynchronize)());
  for (char letter = 0; ::read(STDIN_FILENO, &letter, 1) == 1 && letter != '\n';) {
  }
}

std::uint64_t RandomProgram::size() {
  switch (below(8)) {
    case 0:
      return 1 + below(2 * options_.quota_mib * kMiB);
    case 1:
    case 2:
      return (1 + below(8)) * 2 * kMiB;
    case 3:
      return 1 + below(8 * kMiB);
    default:
      return 1 + below(200'000);
  }
}

bool RandomProgram::hold(CUresult result, Give give, const WrittenRange& range) {
  ++(result == CUDA_SUCCESS ? record_->allocations : record_->refusals);
  if (result != CUDA_SUCCESS) return false;
  held_.push_back({std::move(give), range});
  if (range.bytes >= 4 && below(2) == 0) held_.back().range.value = write(range);
  return true;
}

void RandomProgram::give_one() {
  if (held_.empty()) return;
  std::swap(held_[below(held_.size())], held_.back());
  const Held held = std::move(held_.back());
  held_.pop_back();
  if (held.range.value != 0 && below(2) == 0) check(held.range, below(held.range.bytes));
  expect(held.give() == CUDA_SUCCESS, "what was given can be returned");
}

// At the begin of each block, and so that a word says which block it is of.
std::uint32_t RandomProgram::write(const WrittenRange& range) {
  const auto value = static_cast<std::uint32_t>(1 + below(1 << 24)) << 6;
  MUST(CU(cuCtxSynchronize)());  // memory of streams is there then
  for (std::uint64_t at = 0; at + 4 <= range.bytes; at += kWindowStep)
    MUST(CU(cuMemsetD32_v2)(range.address + at,
                            value + static_cast<std::uint32_t>(at / kWindowStep % 64),
                            std::min(kWindow, range.bytes - at) / 4));
  MUST(CU(cuCtxSynchronize)());
  return value;
}

void RandomProgram::check(const WrittenRange& range, std::uint64_t at) {
  std::uint64_t begin = at / kWindowStep * kWindowStep;
  if (begin + 4 > range.bytes) begin = 0;
  const std::uint64_t words = std::min(kWindow, range.bytes - begin) / 4;
  const std::uint32_t written = range.value + static_cast<std::uint32_t>(begin / kWindowStep % 64);
  for (const std::uint64_t place : {begin, begin + 4 * (words - 1)}) {
    std::uint32_t word = 0;
    MUST(CU(cuMemcpyDtoH_v2)(&word, range.address + place, sizeof word));
    if (word == written) continue;
    end_with(4, "wrong: at byte " + std::to_string(place) + " of " + std::to_string(range.bytes) +
                    " is " + std::to_string(word) + ", and " + std::to_string(written) +
                    " was written");
  }
}

void RandomProgram::check_one() {
  const WrittenRange* const range =
      any_range([](const WrittenRange& one) { return one.value != 0; });
  if (range == nullptr) return;
  check(*range, below(range->bytes));
  ++record_->checks;
}

const WrittenRange* RandomProgram::any_range(const std::function<bool(const WrittenRange&)>& fits) {
  const std::size_t first = held_.empty() ? 0 : below(held_.size());
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const WrittenRange& range = held_[(first + i) % held_.size()].range;
    if (range.bytes != 0 && fits(range)) return &range;
  }
  return nullptr;
}

void RandomProgram::note_opened(std::uint64_t bytes) {
  record_->opened_total += bytes;
  if (options_.depth != 0) record_->opened += bytes;
}

void RandomProgram::note_closed(std::uint64_t bytes) {
  if (options_.depth != 0) record_->opened -= bytes;
}

}  // namespace regatta::attacks

int main(int argc, char** argv) {
  const auto options = regatta::attacks::parse_options(argc, argv);
  regatta::attacks::RandomProgram program(options);
  if (options.filled_mib != 0)
    program.fill();
  else
    program.run();
}
