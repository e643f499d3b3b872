// os/staged_file.h: a text that waits beside its place until it takes it: so that of several files
// all are written or none, and of one that is written for long all of it or nothing.
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta::os {

class StagedFile {
 public:
  // Writes `text` beside `path`, where nothing changes yet; a link stays, and what it names is to
  // be replaced. What is no plain file, like a device or a pipe, is not written into before
  // publish().
  static Result<StagedFile> stage(const std::string& path, std::string_view text);
  // The same of a text that is yet to be written, into what writing_path() names.
  static Result<StagedFile> begin(const std::string& path);
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&& other) = delete;
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;
  // Removes what is not published.
  ~StagedFile();

  // Whether publish() only renames, which does not fail for want of room.
  bool is_plain() const { return !temporary_path_.empty(); }
  // What is no plain file is written into as it stands.
  const std::string& writing_path() const { return is_plain() ? temporary_path_ : path_; }
  // The text takes its place. Once.
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
