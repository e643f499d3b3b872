#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows

// The target of `path` behind all links; the last of them may name nothing yet.
Result<std::string> behind_links(std::string path) {
  std::error_code error;
  for (int i = 0; std::filesystem::is_symlink(path, error); ++i) {
    if (i == kMostLinks) return errno_error(path, ELOOP);
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) return errno_error(path, error.value());
    path = (std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

// As open(2) makes a file that others may read: with a umask of 077 it is its owner's alone. The
// mask can be read only by setting it; for that moment it is the strictest.
mode_t mode_of_new_file() {
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return 0644 & ~mask;
}

}  // namespace

Result<StagedFile> StagedFile::stage(const std::string& path, std::string_view text) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::none) return errno_error(path, error.value());
  if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found)
    return StagedFile(path, "", std::string(text));
  REGATTA_TRY(place, behind_links(path));
  std::string beside = place + ".XXXXXX";
  const UniqueFd file(::mkostemp(beside.data(), O_CLOEXEC));
  if (!file) return errno_error(place);
  StagedFile staged(place, beside, "");
  if (const Status written = write_file(beside, text); !written) {
    // The reason, with the name that the reader knows.
    const std::string& message = written.error().message;
    return Error{written.error().code, place + message.substr(beside.size())};
  }
  if (::fchmod(file.get(), mode_of_new_file()) != 0) return errno_error(place);
  return staged;
}

Result<StagedFile> StagedFile::begin(const std::string& path) {
  REGATTA_TRY(staged, stage(path, ""));
  staged.is_begun_ = true;
  return staged;
}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::exchange(other.temporary_path_, {})),
      text_(std::move(other.text_)),
      is_begun_(other.is_begun_) {}

StagedFile::~StagedFile() {
  if (is_plain()) ::unlink(temporary_path_.c_str());
}

Status StagedFile::publish() {
  if (!is_plain() && is_begun_) return {};
  if (!is_plain()) return write_file(path_, text_);
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) return errno_error(path_);
  temporary_path_.clear();
  return {};
}

}  // namespace regatta::os
