#include "regatta/app/cli/internal/output_files.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "regatta/app/cli/internal/job_file.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::cli {
namespace {

namespace fs = std::filesystem;

// The file that a path stands for, through links, also where that file does not exist yet.
fs::path written_file(fs::path path) {
  constexpr int kLinksMost = 40;  // as Linux follows
  std::error_code ignored;
  for (int link = 0; link < kLinksMost && fs::is_symlink(path, ignored); ++link)
    path = path.parent_path() / fs::read_symlink(path, ignored);
  return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
}

// Several outputs may go to one device or pipe.
bool are_one_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  for (const std::string& path : {a, b})
    if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) return false;
  return fs::equivalent(a, b, ignored) || written_file(a) == written_file(b);
}

// Before the work the place is wrong input; after it the work failed.
Error place_error(const OutputFile& output, Code code, const std::string& message) {
  return {code, message + "; choose another place with " + output.flag};
}

// A device that is full refuses an empty write, too.
Status check_device(const OutputFile& output) {
  const os::UniqueFd file(
      ::open(output.path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file || ::write(file.get(), "", 0) < 0)
    return place_error(output, Code::kInvalidInput, os::errno_error(output.path).message);
  return {};
}

Status check_place(const OutputFile& output) {
  std::error_code ignored;
  const fs::path path(output.path);
  if (fs::is_directory(path, ignored))
    return place_error(output, Code::kInvalidInput, os::errno_error(output.path, EISDIR).message);
  if (fs::is_character_file(path, ignored)) return check_device(output);
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) return {};
  return check_writable(path.parent_path().string(), output.flag);
}

}  // namespace

Status check_outputs(std::span<const OutputFile> outputs, std::span<const std::string> inputs) {
  std::vector<OutputFile> before;
  for (const OutputFile& output : outputs) {
    if (output.path.empty()) continue;
    REGATTA_TRY_DO(check_place(output));
    for (const std::string& input : inputs)
      if (!input.empty() && are_one_file(output.path, input))
        return Error{
            Code::kInvalidInput,
            fmt::format("{}: {} is used already; choose another place", output.flag, output.path)};
    for (const OutputFile& other : before)
      if (are_one_file(output.path, other.path))
        return Error{Code::kInvalidInput, fmt::format("{} and {}: both name {}; name two files",
                                                      other.flag, output.flag, other.path)};
    before.push_back(output);
  }
  return {};
}

Error write_error(const OutputFile& output, const Error& error) {
  const bool is_full = error.code == Code::kExhausted;
  return place_error(output, is_full ? Code::kExhausted : Code::kUnavailable, error.message);
}

Status OutputFiles::write() const {
  std::vector<os::StagedFile> staged;
  for (const auto& [output, text] : texts_) {
    auto one = os::StagedFile::stage(output.path, text);
    if (!one) return write_error(output, one.error());
    staged.push_back(*std::move(one));
  }
  // Devices and pipes first: they may still fail, while staged files are only renamed.
  for (const bool is_plain : {false, true}) {
    for (std::size_t i = 0; i < staged.size(); ++i) {
      if (staged[i].is_plain() != is_plain) continue;
      if (const Status published = staged[i].publish(); !published)
        return write_error(texts_[i].output, published.error());
    }
  }
  return {};
}

}  // namespace regatta::cli
