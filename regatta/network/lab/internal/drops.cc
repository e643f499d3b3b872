#include "regatta/network/lab/internal/drops.h"

#include <cmath>
#include <memory>

#include <fmt/core.h>
#include <nftables/libnftables.h>

#include "regatta/base/core/text.h"

namespace regatta::lab {
namespace {

struct FreeContext {
  void operator()(nft_ctx* context) const { ::nft_ctx_free(context); }
};

Status run(const std::string& commands) {
  const std::unique_ptr<nft_ctx, FreeContext> context(::nft_ctx_new(NFT_CTX_DEFAULT));
  if (!context)
    return Error{Code::kUnsupported, "nftables: no context; is the kernel built with it"};
  ::nft_ctx_buffer_output(context.get());
  ::nft_ctx_buffer_error(context.get());
  if (::nft_run_cmd_from_buffer(context.get(), commands.c_str()) == 0) return {};
  const std::string reason = ::nft_ctx_get_error_buffer(context.get());
  return Error{Code::kUnsupported, fmt::format("nftables: {}", trim(split(reason, '\n').front()))};
}

std::string table_of(const std::string& interface) {
  return "netdev regatta_drop_" + interface;
}

}  // namespace

Status start_drops(const std::string& interface, double share) {
  constexpr long kSteps = 1000000;
  const long limit = std::lround(share * kSteps);
  const std::string match =
      limit >= kSteps ? "" : fmt::format("numgen random mod {} < {} ", kSteps, limit);
  const std::string table = table_of(interface);
  return run(
      fmt::format("add table {0}\n"
                  "delete table {0}\n"
                  "add table {0}\n"
                  "add chain {0} arrive {{ type filter hook ingress device \"{1}\" "
                  "priority 0; policy accept; }}\n"
                  "add rule {0} arrive {2}drop\n",
                  table, interface, match));
}

Status stop_drops(const std::string& interface) {
  const std::string table = table_of(interface);
  return run(fmt::format("add table {0}\ndelete table {0}\n", table));
}

}  // namespace regatta::lab
