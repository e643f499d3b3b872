// os/file.h: whole small files: state, descriptions, kernel settings, also in memory. Errors name
// the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

// The size limit of a text that people write or programs exchange.
inline constexpr std::size_t kTextFileMost = std::size_t{256} << 20;

// The whole file, also of /proc and /sys (whose sizes read as 0). kNotFound when it is missing,
// kInvalidInput as soon as it holds more than `most` bytes: devices have no end.
Result<std::string> read_file(const std::string& path,
                              std::size_t most = std::numeric_limits<std::size_t>::max());

// The same of a text: fails with kInvalidInput at the first byte 0 too, which no text has.
Result<std::string> read_text_file(const std::string& path, std::size_t most = kTextFileMost);

// One write into an existing or new file, as settings in /proc, /sys and cgroups want it.
Status write_file(const std::string& path, std::string_view text);

// Readers see the old text or the new one, never a part: the text is written beside `path`, then
// renamed. A path that is no plain file, like a device or a pipe, is written directly; a link
// stays, and its target is replaced.
Status write_file_atomically(const std::string& path, std::string_view text);

// An open file without a name that holds `text`, in memory, for data that processes share or hand
// on; its position is its beginning. `name`: for errors and /proc. Source: memfd_create(2).
Result<UniqueFd> memory_file(const std::string& name, std::string_view text = {});

// Writes all of `text` into an open file from `offset` on, and leaves the file's position alone.
// `name`: for errors.
Status write_all_at(int fd, std::string_view text, std::uint64_t offset, const std::string& name);

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

// A file that is written beside its path and renamed when it is complete, so that either all of
// several files are replaced or none, and never a part of one.

class StagedFile {
 public:
  // Writes `text` beside `path`, where nothing changes yet; a link stays, and its target is to
  // be replaced. A path that is no plain file, like a device or a pipe, is written by publish().
  static Result<StagedFile> stage(const std::string& path, std::string_view text);
  // The same for a text that the caller then writes to writing_path().
  static Result<StagedFile> begin(const std::string& path);
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&& other) = delete;
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;
  // Removes the file when it was not published.
  ~StagedFile();

  // Whether publish() only renames, which does not fail on a full disk.
  bool is_plain() const { return !temporary_path_.empty(); }
  // A path that is no plain file is written directly.
  const std::string& writing_path() const { return is_plain() ? temporary_path_ : path_; }
  // Replaces `path` by the text; call it once.
  Status publish();

 private:
  StagedFile(std::string path, std::string beside, std::string text)
      : path_(std::move(path)), temporary_path_(std::move(beside)), text_(std::move(text)) {}

  std::string path_;
  std::string temporary_path_;  // empty: no plain file, or published
  std::string text_;            // of what is no plain file
  bool is_begun_ = false;
};

}  // namespace regatta::os
