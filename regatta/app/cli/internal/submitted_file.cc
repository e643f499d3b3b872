#include "regatta/app/cli/internal/submitted_file.h"

#include <cstddef>
#include <vector>

#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/control/job_spec.h"

namespace regatta::cli {

Result<std::string> load_submitted_jobs(const std::string& path) {
  REGATTA_TRY(text, read_named_file(path, kYamlMaxBytes));
  REGATTA_TRY(tree, parse_yaml(text, path));
  if (tree.find("model") != nullptr && tree.find("command") == nullptr)
    return Error{Code::kInvalidInput,
                 path +
                     ": this is a training job, which regatta run plans and runs; to submit it, "
                     "write it below the key train, see examples/submitted_training.yaml"};
  std::string json = json_text(tree);
  REGATTA_TRY(document, YamlDocument::read(tree, path));
  const YamlMap root = document.root();
  if (root.has("jobs")) {
    root.allow({"jobs"});
    const std::vector<YamlMap> jobs = root.maps("jobs");
    for (std::size_t i = 0; i < jobs.size(); ++i)
      static_cast<void>(control::read_job_spec(jobs[i], tree.find("jobs")->items[i]));
  } else {
    static_cast<void>(control::read_job_spec(root, tree));
  }
  REGATTA_TRY_DO(document.status());
  return json;
}

}  // namespace regatta::cli
