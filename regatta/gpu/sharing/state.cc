#include "regatta/gpu/sharing/state.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kMagic = 0x7570677661676572;  // "regavgpu"
constexpr std::uint32_t kVersion = 1;

static_assert(sizeof(TenantRecord) == 208 && sizeof(ClientRecord) == 32 + 24 * kDevicesMax &&
                  sizeof(StateFile) == 56 + 208 * kTenantsMax + 416 * kClientsMax,
              "docs/formats/gpu_state.md gives these sizes");

Status check(const StateFile& file, const std::string& path) {
  const auto damaged = [&](const char* what) {
    return Error{Code::kInvalidInput, path + ": " + what + "; move the file away and start anew"};
  };
  if (file.magic != kMagic) return damaged("is no state of regatta gpu daemon");
  if (file.version != kVersion) return damaged("was written by another version");
  if (file.policy > REGATTA_SHARE_BURST_WEIGHT) return damaged("names a policy that is not there");
  for (const TenantRecord& tenant : file.tenants) {
    if (tenant.live != 0 && ::strnlen(tenant.name, sizeof tenant.name) == sizeof tenant.name)
      return damaged("has a tenant whose name does not end");
  }
  for (const ClientRecord& client : file.clients) {
    if (client.live == 0) continue;
    if (client.pid <= 0 || client.tenant >= kTenantsMax || file.tenants[client.tenant].live == 0)
      return damaged("has a client of no tenant");
    for (const LeaseRecord& lease : client.leases) {
      if (std::max(lease.leased, lease.next) > REGATTA_MEMORY_MAX)
        return damaged("has a lease that is larger than any");
    }
  }
  return {};
}

// Initializes an empty file; the magic is written last.
void write_head(StateFile& file, const std::string& boot) {
  file.version = kVersion;
  file.policy = REGATTA_SHARE_FIXED;
  std::memcpy(file.boot_id, boot.data(), std::min(boot.size(), sizeof file.boot_id - 1));
  store(file.magic, kMagic);
}

// After a reboot no earlier process is alive, and no tenant that `run` started exists.
void forget_earlier_boot(StateFile& file, const std::string& boot) {
  if (boot == file.boot_id) return;
  for (ClientRecord& client : file.clients)
    store(client.live, 0U);
  for (TenantRecord& tenant : file.tenants)
    store(tenant.live, 0U);
  std::memcpy(file.boot_id, boot.data(), std::min(boot.size(), sizeof file.boot_id - 1));
}

// The operator's folder cannot hold the state. A full disk is not the fault of the name.
Error wrong_place(Error error, const char* right = "of its own that this user may write") {
  if (error.code != Code::kExhausted) error.code = Code::kInvalidInput;
  error.message += std::string("; give --state a folder ") + right;
  return error;
}

// The owner of a folder or file, or who may write to it, could put another state in its place,
// with limits, tokens and drained devices of their own.
Status check_owner(const std::string& path, const struct stat& status, const char* right) {
  if (status.st_uid != ::geteuid()) {
    return wrong_place(
        {Code::kInvalidInput, path + ": belongs to user " + std::to_string(status.st_uid) +
                                  ", who could replace the state"},
        right);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{Code::kInvalidInput,
                 path +
                     ": others may write to it and could replace the state; forbid that with "
                     "chmod go-w, or give --state another folder"};
  }
  return {};
}

Status check_folder(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return wrong_place(os::errno_error(folder));
  return check_owner(folder, status, "that this user owns");
}

// A second name of the file may be where others can write.
Status check_file(const std::string& path, const struct stat& status) {
  REGATTA_TRY_DO(check_owner(path, status, "that this user owns, with nothing in it"));
  if (S_ISREG(status.st_mode) && status.st_nlink == 1) return {};
  return Error{Code::kInvalidInput,
               path + ": is no plain file of one name; move it away and start anew"};
}

}  // namespace

Result<MappedState> MappedState::open(const std::string& folder) {
  if (const Status made = os::make_folder(folder, 0700); !made) return wrong_place(made.error());
  REGATTA_TRY_DO(check_folder(folder));
  const std::string path = folder + "/state";
  os::UniqueFd fd(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd) return wrong_place(os::errno_error(path));
  // A helper process that a killed daemon had just started may hold the lock for a moment.
  const Seconds end = os::monotonic_now() + Seconds{0.3};
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return wrong_place(os::errno_error("lock " + path), "on a disk of this machine");
    if (os::monotonic_now() < end) {
      os::sleep_for(Seconds{0.005});
      continue;
    }
    return Error{Code::kConflict, folder + ": another daemon uses this state; stop it first"};
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return os::errno_error(path);
  REGATTA_TRY_DO(check_file(path, status));
  if (status.st_size != 0 && status.st_size != sizeof(StateFile)) {
    return Error{Code::kInvalidInput,
                 path + ": has another size than a state; move the file away and start anew"};
  }
  if (::ftruncate(fd.get(), sizeof(StateFile)) != 0) return os::errno_error(path);
  void* memory =
      ::mmap(nullptr, sizeof(StateFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return os::errno_error(path);
  MappedState state(folder, std::move(fd), static_cast<StateFile*>(memory));
  REGATTA_TRY(boot, os::boot_id());
  // A daemon that was killed between making the file and writing its head left zeros.
  const bool is_new = state->magic == 0 && state->version <= kVersion;
  if (is_new) write_head(*state, boot);
  REGATTA_TRY_DO(check(*state, path));
  forget_earlier_boot(*state, boot);
  return state;
}

MappedState::MappedState(MappedState&& other) noexcept
    : folder_(std::move(other.folder_)),
      lock_(std::move(other.lock_)),
      file_(std::exchange(other.file_, nullptr)) {}

MappedState::~MappedState() {
  if (file_ != nullptr) ::munmap(file_, sizeof(StateFile));
}

}  // namespace regatta::sharing
