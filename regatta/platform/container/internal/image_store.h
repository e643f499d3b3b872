// container/internal/image_store.h: root file systems of images: as they lie on the node, or
// unpacked from an OCI layout into a store, once for each user and image.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::container {

struct ImageRoot {
  std::string folder;
  std::vector<std::string> environment;  // of the image; empty for a root file system
};

// `mounted`: the image's folder, as it was opened for the user with this number; `name`: its path,
// for messages. Unpacks layers with tar(1) in a process that can write nothing but its target.
// kInvalidInput: it is no image, or a damaged one.
Result<ImageRoot> root_of_image(const std::string& mounted, const std::string& name,
                                const std::string& store, unsigned uid);

}  // namespace regatta::container
