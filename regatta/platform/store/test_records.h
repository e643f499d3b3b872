// store/test_records.h: for tests: short ways to write changes and to read a store back.
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

// A folder in memory where that is possible, for tests that are not about a disk: the others wait
// for it most of their time. One thread, before others start: it changes the environment.
inline Result<os::TempFolder> memory_folder() {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
  Result<os::TempFolder> folder = os::TempFolder::create();
  ::setenv("TMPDIR", kept.c_str(), 1);
  return folder;
}

using RecordMap = std::map<std::string, std::pair<Revision, std::string>>;

struct StoreContent {
  Revision revision = 0;
  RecordMap records;
};

inline Change put(const std::string& key, Revision revision, const std::string& value) {
  return {key, revision, value};
}

inline Change removal(const std::string& key, Revision revision) {
  return {key, revision, std::nullopt};
}

inline Result<StoreContent> read_content(Store& store) {
  StoreContent content;
  std::string previous;
  REGATTA_TRY(revision, store.load([&](const Record& record) -> Status {
    EXPECT_LT(previous, record.key);
    previous = record.key;
    content.records[previous] = {record.revision, std::string(record.value)};
    return {};
  }));
  content.revision = revision;
  return content;
}

// The content of a store that must load.
inline StoreContent content_of(Store& store) {
  Result<StoreContent> content = read_content(store);
  EXPECT_TRUE(content) << (content ? "" : content.error().message);
  return content ? *content : StoreContent{};
}

}  // namespace regatta::store
