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

// Devices and pipes take what several write.
bool are_one_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  for (const std::string& path : {a, b})
    if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) return false;
  const auto whole = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  };
  return fs::equivalent(a, b, ignored) || whole(a) == whole(b);
}

Error elsewhere(const OutputFile& output, Error error) {
  error.code = Code::kInvalidInput;
  error.message += "; choose another place with " + output.flag;
  return error;
}

// A device that is full says so of nothing, too.
Status check_device(const OutputFile& output) {
  const os::UniqueFd file(
      ::open(output.path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file || ::write(file.get(), "", 0) < 0)
    return elsewhere(output, os::errno_error(output.path));
  return {};
}

Status check_place(const OutputFile& output) {
  std::error_code ignored;
  const fs::path path(output.path);
  if (fs::is_directory(path, ignored))
    return elsewhere(output, os::errno_error(output.path, EISDIR));
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

Status OutputFiles::write() const {
  std::vector<os::StagedFile> staged;
  for (const auto& [output, text] : texts_) {
    auto one = os::StagedFile::stage(output.path, text);
    if (!one) return elsewhere(output, one.error());
    staged.push_back(*std::move(one));
  }
  // What may find no room yet comes before what is only renamed.
  for (const bool is_plain : {false, true}) {
    for (std::size_t i = 0; i < staged.size(); ++i) {
      if (staged[i].is_plain() != is_plain) continue;
      if (const Status published = staged[i].publish(); !published)
        return elsewhere(texts_[i].output, published.error());
    }
  }
  return {};
}

}  // namespace regatta::cli
