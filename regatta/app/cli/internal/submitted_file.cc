#include "regatta/app/cli/internal/submitted_file.h"

#include <utility>

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
                     ": this is a training job, which regatta run plans and runs; a job to submit "
                     "has a command, see examples/submitted_job.yaml"};
  std::string json = json_text(tree);
  REGATTA_TRY(document, YamlDocument::read(std::move(tree), path));
  const YamlMap root = document.root();
  if (root.has("jobs")) {
    root.allow({"jobs"});
    for (const YamlMap& job : root.maps("jobs"))
      static_cast<void>(control::read_job_spec(job));
  } else {
    static_cast<void>(control::read_job_spec(root));
  }
  REGATTA_TRY_DO(document.status());
  return json;
}

}  // namespace regatta::cli
