// fuzz/image_layout_fuzz.cc: any bytes as each file of an image's layout, and as the request for a
// container. No path that is asked for leaves the layout.

#include <cstddef>
#include <cstdint>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/platform/container/image_layout.h"
#include "regatta/platform/container/rank_container.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): a program
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto read = [&](const std::string& path) {
    REGATTA_CHECK(path == "index.json" || path.starts_with("blobs/sha256/"));
    REGATTA_CHECK(path.find("..") == std::string::npos);
    return Result<std::string>(text);
  };
  static_cast<void>(container::read_image_layout(read, "amd64"));
  if (const auto rank = container::decode_rank_container(text))
    REGATTA_CHECK(container::decode_rank_container(container::encode(*rank)));
  return 0;
}
