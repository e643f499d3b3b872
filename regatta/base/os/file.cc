#include "regatta/base/os/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

Status write_all(const UniqueFd& file, std::string_view text, const std::string& path) {
  do {
    const ssize_t count = ::write(file.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(path);
    text.remove_prefix(static_cast<std::size_t>(count));
  } while (!text.empty());
  return {};
}

// Some file systems report a full disk only now.
Status close_file(UniqueFd& file, const std::string& path) {
  if (::close(file.release()) != 0) return errno_error(path);
  return {};
}

// check(block) fails where a part of the file must not be there.
template <typename Check>
Result<std::string> read_blocks(const std::string& path, std::size_t most, Check&& check) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno_error(path);
  std::string text;
  std::array<char, 16384> block{};
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && status.st_size > 0)  // 0: of /proc, pipes and devices
    text.reserve(std::min(static_cast<std::size_t>(status.st_size), most) + block.size());
  for (;;) {
    const ssize_t count = ::read(file.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(path);
    if (count == 0) return text;
    const std::string_view read(block.data(), static_cast<std::size_t>(count));
    REGATTA_TRY_DO(check(read));
    text.append(read);
    if (text.size() > most) {
      return Error{Code::kInvalidInput,
                   fmt::format("{}: holds more than {} bytes, or has no end", path, most)};
    }
  }
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t most) {
  return read_blocks(path, most, [](std::string_view) { return Status(); });
}

Result<std::string> read_text_file(const std::string& path, std::size_t most) {
  return read_blocks(path, most, [&](std::string_view block) -> Status {
    if (block.find('\0') == block.npos) return {};
    return Error{Code::kInvalidInput, path + ": is no text: a byte of it is 0"};
  });
}

Status write_file(const std::string& path, std::string_view text) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return errno_error(path);
  REGATTA_TRY_DO(write_all(file, text, path));
  return close_file(file, path);
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  REGATTA_TRY(staged, StagedFile::stage(path, text));
  return staged.publish();
}

Status write_all_at(int fd, std::string_view text, std::uint64_t offset, const std::string& name) {
  while (!text.empty()) {
    const ssize_t count = ::pwrite(fd, text.data(), text.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return errno_error(name, count < 0 ? errno : EIO);
    text.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Result<UniqueFd> memory_file(const std::string& name, std::string_view text) {
  UniqueFd file(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!file) return errno_error(name);
  REGATTA_TRY_DO(write_all_at(file.get(), text, 0, name));
  return file;
}

Status make_folder(const std::string& path, unsigned mode) {
  std::error_code error;
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return errno_error(parent.string(), error.value());
  if (::mkdir(path.c_str(), mode) == 0) return {};
  const int reason = errno;  // before the check of the folder sets its own
  if (std::filesystem::is_directory(path, error)) return {};
  return errno_error(path, reason);
}

Status remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return errno_error(path, error.value());
  return {};
}

Result<TempFolder> TempFolder::create(const std::string& prefix) {
  const char* base = std::getenv("TMPDIR");
  std::string path = (base != nullptr && *base != '\0' ? base : "/tmp");
  path += "/" + prefix + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return errno_error(path);
  return TempFolder(std::move(path));
}

TempFolder::TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempFolder& TempFolder::operator=(TempFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempFolder::~TempFolder() {
  // A folder that cannot be removed is left to the system's cleaning of temporary files.
  if (!path_.empty()) static_cast<void>(remove_tree(path_).has_value());
}

}  // namespace regatta::os
