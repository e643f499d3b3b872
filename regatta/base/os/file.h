// os/file.h: whole small files: state, descriptions, kernel settings. Errors name the path.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta::os {

// Of what people write and programs exchange: more than it may hold is no such file.
inline constexpr std::size_t kTextFileMost = std::size_t{256} << 20;

// The whole file, also of /proc and /sys (whose sizes read as 0). kNotFound when it is missing,
// kInvalidInput as soon as it holds more than `most` bytes: devices have no end.
Result<std::string> read_file(const std::string& path,
                              std::size_t most = std::numeric_limits<std::size_t>::max());

// One write into an existing or new file, as settings in /proc, /sys and cgroups want it.
Status write_file(const std::string& path, std::string_view text);

// Readers see the old text or the new one, never a part: written beside `path`, then renamed. What
// is no plain file, like a device or a pipe, is written into as it stands; a link stays, and what
// it names is replaced.
Status write_file_atomically(const std::string& path, std::string_view text);

// Makes `path` and its parents; the last gets `mode`. Success when it is there already.
Status make_folder(const std::string& path, unsigned mode = 0755);

// Removes a file or a whole folder; success when it is not there.
Status remove_tree(const std::string& path);

// A fresh folder (mode 0700) under $TMPDIR or /tmp, removed with its content at destruction.
class TempFolder {
 public:
  static Result<TempFolder> create(const std::string& prefix = "regatta");
  TempFolder(TempFolder&& other) noexcept;
  TempFolder& operator=(TempFolder&& other) noexcept;
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace regatta::os
