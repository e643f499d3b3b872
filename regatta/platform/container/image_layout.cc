#include "regatta/platform/container/image_layout.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"

namespace regatta::container {
namespace {

using nlohmann::json;

constexpr int kIndexDepthMost = 3;  // an index may name another one
constexpr std::size_t kLayersMost = 256;

// "sha256:0123..." -> "blobs/sha256/0123...": hex alone, so that no path leaves the layout.
Result<std::string> blob_of(const json& descriptor) {
  const std::string digest =
      descriptor.is_object() ? descriptor.value("digest", "") : std::string();
  constexpr std::string_view kPrefix = "sha256:";
  const bool is_good =
      digest.size() == kPrefix.size() + 64 && digest.starts_with(kPrefix) &&
      digest.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string::npos;
  if (!is_good)
    return Error{Code::kInvalidInput,
                 fmt::format("'{}' is no digest of SHA-256", printable(digest, 80))};
  return "blobs/sha256/" + digest.substr(kPrefix.size());
}

Result<json> read_json(const ReadBlob& read, const std::string& path) {
  REGATTA_TRY(text, read(path));
  REGATTA_TRY(reader, JsonReader::parse(text, path));
  if (!reader.raw().is_object()) return Error{Code::kInvalidInput, path + ": it is no map"};
  return reader.raw();
}

// The manifest that the index means.
Result<json> choose_manifest(const json& index, const std::string& architecture) {
  const json list = index.value("manifests", json::array());
  if (!list.is_array() || list.empty())
    return Error{Code::kInvalidInput, "index.json: it names no image"};
  if (list.size() == 1) return list.front();
  for (const json& one : list) {
    const json platform = one.is_object() ? one.value("platform", json::object()) : json::object();
    if (platform.is_object() && platform.value("architecture", "") == architecture &&
        platform.value("os", "linux") == "linux")
      return one;
  }
  return Error{Code::kInvalidInput,
               fmt::format("index.json: it has several images, and none for {}", architecture)};
}

Result<ImageLayer> read_layer(const json& descriptor) {
  REGATTA_TRY(blob, blob_of(descriptor));
  const std::string type = descriptor.value("mediaType", "");
  ImageLayer layer{.blob = blob, .compression = ""};
  if (type.ends_with("gzip")) layer.compression = "gzip";
  if (type.ends_with("zstd")) layer.compression = "zstd";
  if (layer.compression.empty() && !type.ends_with(".tar"))
    return Error{Code::kUnsupported,
                 fmt::format("a layer is of the kind '{}', and tar, gzip and zstd are known",
                             printable(type, 80))};
  return layer;
}

}  // namespace

Result<ImageManifest> read_image_layout(const ReadBlob& read, const std::string& architecture) {
  REGATTA_TRY(index, read_json(read, "index.json"));
  ImageManifest image;
  json manifest = std::move(index);
  for (int depth = 0; manifest.contains("manifests"); ++depth) {
    if (depth == kIndexDepthMost)
      return Error{Code::kInvalidInput, "index.json: its indices name each other"};
    REGATTA_TRY(chosen, choose_manifest(manifest, architecture));
    REGATTA_TRY(blob, blob_of(chosen));
    image.digest = blob.substr(blob.rfind('/') + 1);
    REGATTA_TRY(next, read_json(read, blob));
    manifest = std::move(next);
  }
  const json layers = manifest.value("layers", json::array());
  if (!layers.is_array() || layers.empty() || layers.size() > kLayersMost || image.digest.empty())
    return Error{Code::kInvalidInput, "its manifest has no layers"};
  for (const json& descriptor : layers) {
    REGATTA_TRY(layer, read_layer(descriptor));
    image.layers.push_back(std::move(layer));
  }
  REGATTA_TRY(config_blob, blob_of(manifest.value("config", json())));
  REGATTA_TRY(config, read_json(read, config_blob));
  const json inner = config.value("config", json::object());
  if (const auto found = inner.find("Env"); inner.is_object() && found != inner.end())
    for (const json& variable : *found)
      if (variable.is_string()) image.environment.push_back(variable.get<std::string>());
  return image;
}

}  // namespace regatta::container
