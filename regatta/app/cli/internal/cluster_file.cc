#include "regatta/app/cli/internal/cluster_file.h"

#include <filesystem>
#include <system_error>

#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/file.h"
#include "regatta/model/topo/cluster_yaml.h"

namespace regatta::cli {

Result<std::string> read_named_file(const std::string& path, std::size_t most) {
  Result<std::string> text = os::read_text_file(path, most);
  if (!text) return Error{Code::kInvalidInput, text.error().message + "; check the path"};
  return text;
}

bool has_key(const std::string& text, const std::string& key) {
  return ("\n" + text).find("\n" + key + ":") != std::string::npos;
}

Result<topo::Cluster> load_cluster(const std::string& path) {
  if (std::error_code failed; !std::filesystem::exists(path, failed) && !failed)
    return Error{Code::kInvalidInput, path +
                                          ": no such file; check the path, or write a cluster file "
                                          "like examples/cluster.yaml, or with regatta fabric "
                                          "design --gpus N --out FILE"};
  REGATTA_TRY(text, read_named_file(path, kYamlMaxBytes));
  if (has_key(text, "model") && !has_key(text, "servers"))
    return Error{Code::kInvalidInput, path + ": this is a job file; give a cluster file here"};
  return topo::parse_cluster(text, path);
}

}  // namespace regatta::cli
