// container/image_layout.h: an image as an OCI layout: a folder with index.json and blobs. Pure:
// the caller reads the blobs. Source: OCI image specification 1.0, image-layout.md, manifest.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::container {

struct ImageLayer {
  std::string blob;         // path in the layout: blobs/sha256/...
  std::string compression;  // "", "gzip" or "zstd"
};

struct ImageManifest {
  std::string digest;              // of the manifest, hex
  std::vector<ImageLayer> layers;  // the lowest first
  std::vector<std::string> environment;
};

// Text of a file of the layout.
using ReadBlob = std::function<Result<std::string>(const std::string& path)>;

// The image of `architecture` ("amd64"), or the only one. kInvalidInput names what is missing.
Result<ImageManifest> read_image_layout(const ReadBlob& read, const std::string& architecture);

}  // namespace regatta::container
