#include "regatta/app/cli/internal/coll_command.h"

namespace regatta::cli {

void add_coll_command(CLI::App& app, int& exit_status) {
  auto* coll =
      app.add_subcommand("coll", "Explain the settings of collectives; inspect running ranks");
  coll->require_subcommand(1);
  coll->footer(
      "Example:\n"
      "  regatta coll explain all_reduce --sizes 1K:64M\n"
      "  regatta coll inspect gpt-small");
  add_coll_explain(*coll, exit_status);
  add_coll_inspect(*coll, exit_status);
}

}  // namespace regatta::cli
